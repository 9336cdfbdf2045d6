/// What the processes of one seed have printed, and the violations that follow from it. `CompletionProcess` describes the
/// lines.
struct CompletionLedger: Sendable {
    private let seed: UInt64
    private var process = 0
    private var ends: [String: [String]] = [:]
    private var storedIn: [String: Int] = [:]
    /// The requests that the program has cancelled in the queue, perhaps after they were given up.
    private var cancelling: Set<String> = []
    /// The states in which the handler of the tag has received the requests.
    private var completed: [String: String] = [:]
    /// The last request that the handler of the tag has received. The process may have ended before the queue recorded
    /// the call, so the next process may repeat it.
    private var lastCompleted: String?
    private(set) var kills = 0
    private(set) var handlers = 0
    /// The number of requests that ended in another process than the one that stored them.
    private(set) var resumed = 0
    private(set) var finals: [String: String] = [:]
    private(set) var violations: [String] = []

    init(seed: UInt64) { self.seed = seed }

    /// The requests whose storing was reported.
    var stored: Set<String> { Set(storedIn.keys) }

    mutating func violated(_ violation: String) {
        violations.append("NETWATCH_SEED=\(seed): \(violation)")
    }

    /// Adds the lines of a process.
    ///
    /// - Parameter isKilled: Whether the process was killed; if not, its last line must be `over`.
    mutating func add(_ lines: [String], isKilled: Bool) {
        var calls: [Substring: Int] = [:]
        var completions: [String] = []
        for line in lines {
            let words = line.split(separator: " ", maxSplits: 2)
            switch (words.first, words.count) {
            case ("handler", 2): calls[words[1], default: 0] += 1
            case ("stored", 2): storedIn[String(words[1])] = process
            case ("cancelling", 2): cancelling.insert(String(words[1]))
            case ("sent", 2):
                if ends[String(words[1])] != nil { violated("`\(words[1])` was sent after its end") }
            case ("ended", 3): end(String(words[1]), String(words[2]))
            case ("completed", 3):
                completions.append(String(words[1]))
                complete(completions, String(words[2]))
            case ("final", 3): finals[String(words[1])] = String(words[2])
            case ("violation", _): violated(String(line.dropFirst("violation ".count)))
            default: break
            }
        }
        lastCompleted = completions.last ?? lastCompleted
        handlers += calls.count
        for (handler, count) in calls.sorted(by: { $0.key < $1.key }) where count > 1 {
            violated("handler \(handler) was called \(count) times in process \(process)")
        }
        if isKilled {
            kills += 1
        } else if !lines.contains("over") {
            violated("process \(process) did not end by itself")
        }
        process += 1
    }

    private mutating func end(_ id: String, _ state: String) {
        ends[id, default: []].append(state)
        if let place = storedIn[id], place < process { resumed += 1 }
    }

    /// - Parameter completions: The requests that the handler of the tag has received in this process; the last one
    ///   now.
    private mutating func complete(_ completions: [String], _ state: String) {
        let id = completions.last!
        let isRepeated = completed.updateValue(state, forKey: id) != nil
        if completions.dropLast().contains(id) {
            violated("the tag's handler received `\(id)` twice in process \(process)")
        } else if isRepeated, id != lastCompleted {
            violated("the tag's handler received `\(id)` again in process \(process)")
        }
    }

    /// Checks the requests after the last process.
    mutating func finish() {
        for id in stored.union(finals.keys).sorted() {
            guard let state = finals[id] else {
                violated("`\(id)` was stored and is lost")
                continue
            }
            // The program may have cancelled a dead request. The handler then receives one of the two states.
            let mayHaveDied = state == "cancelled" && cancelling.contains(id)
            if completed[id] != state, !(mayHaveDied && completed[id] == "dead") {
                let received = completed[id].map { "as \($0)" } ?? "never"
                violated("`\(id)` is \(state) at the end, but the tag's handler received it \(received)")
            }
            var ends = ends[id, default: []]
            if mayHaveDied, ends.first == "dead" { ends.removeFirst() }
            if !["delivered", "dead", "cancelled", "superseded"].contains(state) {
                violated("`\(id)` is \(state) at the end")
            } else if ends.count > 1 {
                violated("`\(id)` ended \(ends.count) times: \(ends.joined(separator: ", "))")
            } else if let end = ends.first, end != state {
                violated("`\(id)` is \(state) at the end, but ended as \(end)")
            }
        }
    }
}
