import engine.ERFOptEngine;
import java.util.ArrayList;
import java.util.List;
import scala.collection.immutable.Map;
import stream.GenericEvent;
import stream.source.EndOfStreamEvent;
import workflow.provider.AbstractProvider;
import workflow.provider.FSMProvider;
import workflow.provider.NSRAProvider;
import workflow.provider.SNFAProvider;
import workflow.provider.source.nsra.NSRASourceFromSREM;
import workflow.provider.source.snfa.SNFASourceFromSRE;

/**
 * Wayeb, its optimized engine: arguments are the stream, the number of runs, the file of the pattern and `registers` if
 * it has any. Matches are counted and their events visited; it has no measures of them.
 */
public final class WayebPeer {
    private WayebPeer() {}

    public static void main(String[] arguments) throws Exception {
        List<GenericEvent> events = new ArrayList<>();
        for (Event event : Event.read(arguments[0])) {
            events.add(GenericEvent.apply(
                    events.size(), event.type, event.at, new Map.Map1<String, Object>("v", event.v)));
        }
        String pattern = arguments[2];
        AbstractProvider automaton = arguments[3].equals("registers")
                ? NSRAProvider.apply(NSRASourceFromSREM.apply(pattern))
                : SNFAProvider.apply(SNFASourceFromSRE.apply(pattern));
        Timed.withoutMeasures();
        Timed.repeat(Integer.parseInt(arguments[1]), () -> once(events, FSMProvider.apply(automaton)));
    }

    private static void once(List<GenericEvent> events, FSMProvider automaton) {
        ERFOptEngine engine = ERFOptEngine.apply(automaton, false, true, false, 0, false, 1, 1, false, false);
        Timed.begin();
        for (GenericEvent event : events) engine.newEventEmitted(event);
        Timed.end();
        engine.newEventEmitted(new EndOfStreamEvent());
        Timed.matches = Long.parseLong(engine.getProfiler().getStat("matchesNo"));
    }
}
