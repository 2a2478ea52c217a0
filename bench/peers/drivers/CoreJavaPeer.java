import edu.puc.core.execution.BaseExecutor;
import edu.puc.core.execution.structures.output.ComplexEvent;
import edu.puc.core.parser.CompoundStatementParser;
import edu.puc.core.parser.DeclarationParser;
import edu.puc.core.parser.QueryParser;
import edu.puc.core.parser.plan.LogicalPlan;
import java.util.ArrayList;
import java.util.List;

/** CORE in Java: arguments are the stream, the number of runs, the query and the types of events. */
public final class CoreJavaPeer {
    private CoreJavaPeer() {}

    public static void main(String[] arguments) throws Exception {
        CompoundStatementParser parser = new CompoundStatementParser(new DeclarationParser(), new QueryParser());
        String types = arguments[3];
        StringBuilder declarations = new StringBuilder();
        for (String type : types.split("")) {
            declarations.append("DECLARE EVENT ").append(type).append("(at long, id int, v int)\n");
        }
        parser.parse(declarations + "DECLARE STREAM S(" + String.join(", ", types.split("")) + ")");
        LogicalPlan plan = parser.parse(arguments[2]).get(0);
        List<edu.puc.core.runtime.events.Event> events = new ArrayList<>();
        for (Event event : Event.read(arguments[0])) {
            events.add(edu.puc.core.runtime.events.Event.EventWithTimestamp(
                    "S", event.type, event.at, event.at, event.id, event.v));
        }
        Timed.repeat(Integer.parseInt(arguments[1]), () -> once(events, plan));
    }

    private static void once(List<edu.puc.core.runtime.events.Event> events, LogicalPlan plan) {
        BaseExecutor executor = BaseExecutor.fromPlan(plan);
        executor.setMatchCallback(group -> {
            for (ComplexEvent match : group) {
                if (match != null) measure(match);
            }
        });
        Timed.begin();
        for (edu.puc.core.runtime.events.Event event : events) executor.sendEvent(event);
        Timed.end();
    }

    /** The value of the A, and how many B there are. */
    private static void measure(ComplexEvent match) {
        Timed.matches++;
        for (edu.puc.core.runtime.events.Event event : match) {
            if ("A".equals(event.getName())) Timed.sum += ((Number) event.getValue(2)).longValue();
            if ("B".equals(event.getName())) Timed.sum++;
        }
    }
}
