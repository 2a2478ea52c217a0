import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;

/**
 * Runs a case several times and prints, for every run, its matches, their measures' sum and its processor time. Java tells
 * processor time in hundredths of a second, so that a run passes over the stream until it has taken half a second, and
 * the first, which warms up, until it has taken four.
 */
final class Timed {
    /** One pass over the stream; it counts its matches here. */
    interface Run {
        void once() throws Exception;
    }

    private static final long WARM = 4_000_000_000L;
    private static final long ENOUGH = 500_000_000L;
    private static final long LONGEST = 20_000_000_000L; // with what a pass needs besides, such as starting a job

    static long matches;
    static long sum;
    private static final OperatingSystemMXBean SYSTEM =
            (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
    private static boolean measured = true;
    private static long begin;
    private static long end;

    private Timed() {}

    /** Before the first event: the engine is ready. */
    static void begin() {
        begin = SYSTEM.getProcessCpuTime();
    }

    /** After the last match. */
    static void end() {
        end = SYSTEM.getProcessCpuTime();
    }

    /** The engine counts matches and tells no more of them. */
    static void withoutMeasures() {
        measured = false;
    }

    static void repeat(int repeats, Run run) throws Exception {
        for (int k = 0; k < repeats; k++) {
            long started = System.nanoTime();
            long taken = 0;
            int passes = 0;
            System.gc();
            do {
                matches = 0;
                sum = 0;
                run.once();
                taken += end - begin;
                passes++;
            } while (taken < (k == 0 ? WARM : ENOUGH) && System.nanoTime() - started < LONGEST);
            System.out.println("run " + matches + " " + (measured ? sum : "-") + " " + taken / passes);
        }
    }
}
