import com.espertech.esper.common.client.EPCompiled;
import com.espertech.esper.common.client.configuration.Configuration;
import com.espertech.esper.compiler.client.CompilerArguments;
import com.espertech.esper.compiler.client.EPCompilerProvider;
import com.espertech.esper.runtime.client.EPEventService;
import com.espertech.esper.runtime.client.EPRuntime;
import com.espertech.esper.runtime.client.EPRuntimeProvider;
import com.espertech.esper.runtime.client.EPStatement;
import java.util.List;

/** Esper: arguments are the stream, the number of runs and the statement, which gives `low` and `n` for every match. */
public final class EsperPeer {
    private EsperPeer() {}

    public static void main(String[] arguments) throws Exception {
        List<Event> events = Event.read(arguments[0]);
        Configuration configuration = new Configuration();
        configuration.getCommon().addEventType("E", Event.class);
        configuration.getRuntime().getThreading().setInternalTimerEnabled(false);
        EPCompiled compiled =
                EPCompilerProvider.getCompiler().compile(arguments[2], new CompilerArguments(configuration));
        Timed.repeat(Integer.parseInt(arguments[1]), () -> once(events, configuration, compiled));
    }

    private static void once(List<Event> events, Configuration configuration, EPCompiled compiled) throws Exception {
        EPRuntime runtime = EPRuntimeProvider.getRuntime("peer", configuration);
        runtime.initialize();
        EPEventService service = runtime.getEventService();
        service.clockExternal();
        long now = events.get(0).at;
        service.advanceTime(now);
        EPStatement statement = runtime.getDeploymentService().deploy(compiled).getStatements()[0];
        statement.addListener((found, removed, of, by) -> {
            Timed.matches += found.length;
            for (var match : found) {
                Timed.sum += ((Number) match.get("low")).longValue() + ((Number) match.get("n")).longValue();
            }
        });
        Timed.begin();
        for (Event event : events) {
            if (event.at != now) {
                now = event.at;
                service.advanceTime(now);
            }
            service.sendEventBean(event, "E");
        }
        service.advanceTime(now + 1_000_000_000L);
        Timed.end();
        runtime.destroy();
    }
}
