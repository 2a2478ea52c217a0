import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.eventtime.Watermark;
import org.apache.flink.api.common.eventtime.WatermarkGenerator;
import org.apache.flink.api.common.eventtime.WatermarkOutput;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.cep.CEP;
import org.apache.flink.cep.functions.PatternProcessFunction;
import org.apache.flink.cep.nfa.aftermatch.AfterMatchSkipStrategy;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.IterativeCondition;
import org.apache.flink.cep.pattern.conditions.SimpleCondition;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.streaming.api.functions.source.SourceFunction;
import org.apache.flink.util.Collector;

/** FlinkCEP in one task of this process: arguments are the stream, the number of runs, the case and its window in ms. */
public final class FlinkPeer {
    private static List<Event> events;

    private FlinkPeer() {}

    public static void main(String[] arguments) throws Exception {
        events = Event.read(arguments[0]);
        String name = arguments[2];
        Pattern<Event, ?> pattern = pattern(name).within(Duration.ofMillis(Long.parseLong(arguments[3])));
        Timed.repeat(Integer.parseInt(arguments[1]), () -> once(pattern, name.equals("absence")));
    }

    private static Pattern<Event, ?> pattern(String name) {
        Pattern<Event, Event> first = Pattern.<Event>begin("a", AfterMatchSkipStrategy.noSkip()).where(type("A"));
        switch (name) {
            case "sequence":
                return first.followedByAny("b").where(type("B")).followedByAny("c").where(type("C"));
            case "comparison":
                return first.followedByAny("b").where(type("B")).followedByAny("c").where(type("C")).where(new AboveFirst());
            case "combinations":
                return first.followedByAny("b").where(type("B")).oneOrMore().allowCombinations()
                        .followedByAny("c").where(type("C"));
            case "absence":
                return first.notFollowedBy("b").where(type("B"));
            case "COUNT":
                return first.next("b").where(type("B")).timesOrMore(5).consecutive().next("c").where(type("C"));
            default:
                Pattern<Event, Event> last =
                        first.next("b").where(type("B")).oneOrMore().consecutive().next("c").where(type("C"));
                return name.equals("AVG") ? last.where(new AboveMean()) : last;
        }
    }

    private static SimpleCondition<Event> type(String type) {
        return SimpleCondition.of(event -> event.type.equals(type));
    }

    /** Its value is above that of the first. */
    private static final class AboveFirst extends IterativeCondition<Event> {
        @Override
        public boolean filter(Event event, Context<Event> context) throws Exception {
            for (Event each : context.getEventsForPattern("a")) {
                if (event.v <= each.v) return false;
            }
            return true;
        }
    }

    /** Its value is above the mean of those before. */
    private static final class AboveMean extends IterativeCondition<Event> {
        @Override
        public boolean filter(Event event, Context<Event> context) throws Exception {
            long sum = 0;
            long count = 0;
            for (Event each : context.getEventsForPattern("b")) {
                sum += each.v;
                count++;
            }
            return event.v * (double) count > sum;
        }
    }

    private static void once(Pattern<Event, ?> pattern, boolean keyed) throws Exception {
        StreamExecutionEnvironment environment = StreamExecutionEnvironment.createLocalEnvironment(1);
        environment.getConfig().enableObjectReuse();
        DataStream<Event> stream = environment.addSource(new Preloaded())
                .returns(Event.class)
                .assignTimestampsAndWatermarks(WatermarkStrategy.<Event>forGenerator(context -> new EveryEvent())
                        .withTimestampAssigner((event, before) -> event.at));
        CEP.pattern(keyed ? stream.keyBy(event -> event.id) : stream, pattern)
                .process(new Counted())
                .sinkTo(new DiscardingSink<>());
        environment.execute();
    }

    /** The stream, from memory. */
    private static final class Preloaded implements SourceFunction<Event> {
        @Override
        public void run(SourceContext<Event> context) {
            Timed.begin();
            for (Event event : events) context.collect(event);
        }

        @Override
        public void cancel() {}
    }

    /** Events are in order: nothing before one is to come. */
    private static final class EveryEvent implements WatermarkGenerator<Event> {
        private long last = Long.MIN_VALUE;

        @Override
        public void onEvent(Event event, long at, WatermarkOutput output) {
            if (at > last) {
                last = at;
                output.emitWatermark(new Watermark(at - 1));
            }
        }

        @Override
        public void onPeriodicEmit(WatermarkOutput output) {}
    }

    /** Counts matches and adds up their measures. */
    private static final class Counted extends PatternProcessFunction<Event, Long> {
        @Override
        public void processMatch(Map<String, List<Event>> match, Context context, Collector<Long> out) {
            Timed.matches++;
            Timed.sum += match.get("a").get(0).v + match.getOrDefault("b", List.of()).size();
        }

        @Override
        public void close() {
            Timed.end();
        }
    }
}
