internal import Foundation
internal import Glibc
internal import Logging
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import OfflineQueue
internal import Testing

@testable internal import NetwatchService

/// The log in the journal of systemd: entries with fields, and lines on standard error if the journal does not take
/// entries.
@Suite(.timeLimit(.minutes(5))) struct JournalTests {
    private let directory = try! ScratchDirectory()
    private var path: String { directory.file("journal") }

    /// A pair of stream sockets: what the service has as standard error, and the end of the journal.
    private final class StandardError: Sendable {
        let service: FileDescriptor
        let journal: FileDescriptor

        init() throws {
            var ends: [CInt] = [0, 0]
            let type = CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
            try systemCall("socketpair") { socketpair(AF_UNIX, type, 0, &ends) }
            service = FileDescriptor(owning: ends[0])
            journal = FileDescriptor(owning: ends[1])
        }

        /// The lines that have arrived.
        func lines() -> [String] {
            var bytes: [UInt8] = []
            var piece = [UInt8](repeating: 0, count: 65_536)
            while case let count = recv(journal.rawValue, &piece, piece.count, CInt(MSG_DONTWAIT)), count > 0
            {
                bytes += piece.prefix(count)
            }
            return String(decoding: bytes, as: UTF8.self).split(separator: "\n").map(String.init)
        }
    }

    private func logger(_ journal: Journal) -> Logger {
        Logger(label: "test") {
            ServiceLogHandler(label: $0, threshold: LogThreshold(.info), journal: journal)
        }
    }

    /// A logger that sends entries to the path, and otherwise writes lines.
    private func logger(_ errors: StandardError? = nil) throws -> Logger {
        let stream = errors.map { JournalStream($0.service.rawValue) }
        return logger(Journal(socket: try JournalSocket(path: path), stream: stream))
    }

    @Test func `a value with a line break is sent with its length`() {
        var entry = JournalEntry()
        entry.add("A", "b=c")
        entry.add("D", "e\nf")
        #expect(entry.bytes == Array("A=b=c\nD\n".utf8) + [3, 0, 0, 0, 0, 0, 0, 0] + Array("e\nf\n".utf8))
    }

    @Test func `an entry has the message with its pairs, the priority and the fields, all printable`() throws
    {
        let receiver = try JournalReceiver(path)
        let log = try logger()
        let fields = Logger.Metadata.fields([.host: "a.example", .lane: "x\ny", .cause: nil, .requestID: ""])
        log.warning("first\nsecond", metadata: fields.merging(["error": "\u{202E}e", "call": "c"]) { $1 })
        log.debug("below the threshold")
        log.critical("last")
        let common = ["SYSLOG_IDENTIFIER": "netwatch"]
        let first = [
            "MESSAGE": #"first\nsecond call=c error=\u{202E}e"#, "PRIORITY": "4",
            "NETWATCH_HOST": "a.example", "NETWATCH_LANE": #"x\ny"#,
        ]
        let entry = try receiver.receive()
        #expect(entry?.fields == first.merging(common) { $1 } && entry?.seals == nil)
        #expect(
            try receiver.receive()?.fields == ["MESSAGE": "last", "PRIORITY": "2"].merging(common) { $1 }
        )
        #expect(try receiver.receive() == nil)
    }

    @Test func `an entry about a request or a lane names the host, the id, the lane and the cause`()
        async throws
    {
        let receiver = try JournalReceiver(path)
        let log = QueueLog(try logger())
        var event = QueueEvent(.held, at: Date())
        (event.host, event.requestID, event.lane) = ("a.example", "id-1", "orders")
        (event.holdReason, event.status) = (.auth, 401)
        await log.log(event)
        var closed = QueueEvent(.laneClosed, at: Date())
        (closed.host, closed.due, closed.status) = ("b.example", Date(), 429)
        await log.log(closed)
        var fields: [[String: String]] = []
        while let entry = try receiver.receive() {
            fields.append(entry.fields.filter { $0.key.hasPrefix("NETWATCH_") })
        }
        #expect(
            fields == [
                [
                    "NETWATCH_HOST": "a.example", "NETWATCH_REQUEST_ID": "id-1", "NETWATCH_LANE": "orders",
                    "NETWATCH_CAUSE": "auth",
                ],
                ["NETWATCH_HOST": "b.example", "NETWATCH_CAUSE": "HTTP 429"],
            ]
        )
    }

    @Test func `an entry that is too large for a datagram is sent as a sealed file`() throws {
        let receiver = try JournalReceiver(path)
        let text = String(repeating: "é", count: 1 << 20)
        let log = try logger()
        log.error("\(text)", metadata: .fields([.host: "a.example"]))
        let entry = try #require(try receiver.receive())
        // F_SEAL_SEAL, F_SEAL_SHRINK, F_SEAL_GROW and F_SEAL_WRITE.
        #expect(entry.seals == 15 && entry.fields["NETWATCH_HOST"] == "a.example")
        #expect(entry.fields["MESSAGE"] == text)
    }

    @Test func `without journald, lines with their priority are written instead`() throws {
        let errors = try StandardError()
        let log = try logger(errors)
        log.notice("first\nsecond", metadata: .fields([.host: "a.example"]))
        #expect(errors.lines() == [#"<5>first\nsecond"#])
        // It has started, and has left its socket to another process.
        var receiver: JournalReceiver? = try JournalReceiver(path)
        log.notice("third")
        #expect(try receiver?.receive()?.fields["MESSAGE"] == "third")
        receiver = nil
        log.notice("fourth")
        #expect(errors.lines() == ["<5>fourth"])
    }

    /// Logs so many entries that no buffer of the kernel can take them, and returns the number of those that were lost.
    private func fill(_ log: Logger, _ errors: StandardError, _ receiver: JournalReceiver? = nil) throws
        -> Int
    {
        let count = 5000
        let padding = String(repeating: "x", count: 1000)
        for _ in 0..<count { log.info("\(padding)") }
        var received = errors.lines().count
        #expect(received > 0)
        while let entry = try receiver?.receive() {
            #expect(entry.fields["MESSAGE"] == padding)
            received += 1
        }
        return count - received
    }

    @Test func `if the journal reads neither entries nor lines, entries are lost, and counted`() throws {
        let errors = try StandardError()
        let receiver = try JournalReceiver(path)
        let log = try logger(errors)
        let lost = try fill(log, errors, receiver)
        #expect(lost > 0)
        log.info("later")
        let later = [try receiver.receive(), try receiver.receive(), try receiver.receive()]
        let loss = "log entries that were lost because the journal did not read them: \(lost)"
        #expect(later.map { $0?.fields["MESSAGE"] } == ["later", loss, nil])
        #expect(later[1]?.fields["PRIORITY"] == "4")
    }

    @Test func `lost lines are counted in the next line`() throws {
        let errors = try StandardError()
        let log = logger(Journal(socket: nil, stream: JournalStream(errors.service.rawValue)))
        let lost = try fill(log, errors)
        for text in ["later", "last"] { log.info("\(text)") }
        #expect(
            errors.lines().suffix(3) == [
                "<4>log entries that were lost because the journal did not read them: \(lost)", "<6>later",
                "<6>last",
            ]
        )
    }
}
