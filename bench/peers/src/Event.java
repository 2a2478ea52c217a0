import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** An event as both peers read it: a bean for Esper, a plain object for Flink. */
public class Event {
    public long at;
    public String type;
    public int id;
    public int v;

    public Event() {}

    private Event(String line) {
        String[] parts = line.split(",");
        at = Long.parseLong(parts[0]);
        type = parts[1].intern();
        id = Integer.parseInt(parts[2]);
        v = Integer.parseInt(parts[3]);
    }

    public long getAt() { return at; }

    public String getType() { return type; }

    public int getId() { return id; }

    public int getV() { return v; }

    /** The whole stream, before anything is timed. */
    static List<Event> read(String path) throws IOException {
        List<Event> events = new ArrayList<>();
        for (String line : Files.readAllLines(Path.of(path))) events.add(new Event(line));
        return events;
    }
}
