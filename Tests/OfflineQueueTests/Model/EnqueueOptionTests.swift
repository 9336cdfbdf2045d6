internal import Foundation
internal import OfflineQueue
internal import Testing

/// The ranges of all options: values at the limits, and just outside them.
@Suite struct EnqueueOptionTests {
    private func code(_ adjust: (inout EnqueueOptions) -> Void) -> QueueError.Code? {
        failure(adjust)?.code
    }

    private func failure(_ adjust: (inout EnqueueOptions) -> Void) -> QueueError? {
        var options = EnqueueOptions(id: "self")
        adjust(&options)
        do {
            _ = try NewRequest(
                QueueRequest(method: "POST", url: "http://example.com/"),
                options: options,
                now: start.date
            )
            return nil
        } catch {
            return error
        }
    }

    private func at(_ seconds: Double) -> Date { start.date.addingTimeInterval(seconds) }
    private let year = 366 * 86_400.0

    @Test func `a time to live is 1 ms to 366 days`() {
        for life in [
            Duration.zero, .microseconds(999), .seconds(-1), .seconds(366 * 86_400 + 1),
            .seconds(3_155_760_000),
        ] {
            #expect(code { $0.timeToLive = life } == .invalidOption, "\(life)")
        }
        for life in [Duration.milliseconds(1), .seconds(366 * 86_400)] {
            #expect(code { $0.timeToLive = life } == nil, "\(life)")
        }
        #expect(
            failure { $0.timeToLive = day * 367 }!.message
                == "the time to live is 367 days; it must be 1 ms to 366 days"
        )
        let almost = failure { $0.timeToLive = .microseconds(999) }!.message
        #expect(almost.contains("is 999 microseconds;"), "the value is not rounded")
    }

    @Test func `labels of the service are refused for users, and only for them`() {
        let root = Submitter(user: 0)
        func failure(_ lane: String, _ submitter: Submitter?) -> QueueError? {
            self.failure { ($0.lane, $0.submitter) = (lane, submitter) }
        }
        let refusal = failure("netwatch-hooks", root)
        #expect(refusal?.code == .invalidOption)
        #expect(
            refusal?.message
                == "the label of the lane is `netwatch-hooks`; it must not begin with `netwatch-`, which is reserved for "
                + "the service"
        )
        // The bytes decide, not the characters.
        #expect(failure("netwatch-\u{301}", root) != nil)
        for label in ["netwatch", "Netwatch-hooks", "my-netwatch-hooks"] {
            #expect(failure(label, root) == nil)
        }
        #expect(failure("netwatch-hooks", nil) == nil)
    }

    @Test func `a deadline lies within the next 366 days`() {
        for deadline in [at(0), at(-1), at(year + 1), .distantFuture, .distantPast] {
            #expect(code { $0.deadline = deadline } == .invalidOption)
        }
        #expect(code { $0.deadline = at(0.001) } == nil)
        #expect(code { $0.deadline = at(year) } == nil)
    }

    @Test func `a request may be scheduled for the past or for any time before it expires`() {
        #expect(code { $0.notBefore = .distantPast } == nil)
        #expect(code { $0.notBefore = at(6 * 86_400) } == nil)
        #expect(code { $0.notBefore = at(7 * 86_400) } == .invalidOption, "the request would expire first")
        #expect(code { $0.notBefore = .distantFuture } == .invalidOption)
        let beyondDeadline = code {
            $0.notBefore = at(100)
            $0.deadline = at(100)
        }
        #expect(beyondDeadline == .invalidOption)
    }

    /// Returns a window that opens a number of hours after the time of the test, for 30 minutes.
    private func window(in hours: Int) throws -> DailyWindow {
        let hour = (Int(start.milliseconds / 3_600_000) + hours) % 24
        return try DailyWindow(parsing: String(format: "%02d:00-%02d:30", hour, hour))
    }

    @Test func `a window opens before the request expires`() throws {
        let window = try window(in: 3)
        let opening = window.nextOpening(from: start.date).timeIntervalSince(start.date)
        for (life, isAccepted) in [(opening - 1, false), (opening, false), (opening + 1, true)] {
            let refusal = failure {
                $0.constraints.window = window
                $0.timeToLive = .seconds(life)
            }
            #expect((refusal == nil) == isAccepted, "\(life): \(refusal as Any)")
        }
        let early = failure {
            $0.constraints.window = window
            $0.timeToLive = .seconds(3600)
        }
        #expect(early?.code == .invalidOption)
        #expect(early?.message.contains("before the window `\(window)` opens at 20") == true)
        #expect(early?.message.hasSuffix(": the time to live is 1 hour") == true, "\(early as Any)")
        let deadline = failure {
            $0.constraints.window = window
            $0.deadline = at(60)
        }
        #expect(deadline?.message.contains(": the deadline is 20") == true, "\(deadline as Any)")
        // The window opens once before the first attempt may start, and next after the request has expired.
        let later = failure {
            $0.constraints.window = window
            $0.notBefore = at(opening + 3600)
            $0.timeToLive = .seconds(opening + 7200)
        }
        #expect(later?.message.contains("before the window") == true, "\(later as Any)")
    }

    @Test func `priorities are 0 to 9, and a FIFO lane accepts only the default`() {
        for priority in [-1, 10, Int.min, Int.max] {
            #expect(code { $0.priority = priority } == .invalidOption)
        }
        for priority in [0, 9] { #expect(code { $0.priority = priority } == nil) }
        let ordered = code {
            $0.isFIFO = true
            $0.priority = 4
        }
        #expect(ordered == .invalidOption)
    }

    @Test func `the maximum number of attempts is at least one`() {
        for most in [0, -1, Int.min] { #expect(code { $0.maximumAttempts = most } == .invalidOption) }
        for most in [1, Int.max] { #expect(code { $0.maximumAttempts = most } == nil) }
    }

    @Test func `a label has 1 to 255 bytes`() {
        for label in ["", String(repeating: "x", count: 256), String(repeating: "ä", count: 128)] {
            #expect(code { $0.lane = label } == .invalidOption)
        }
        for label in ["x", String(repeating: "x", count: 255), "ä ☃"] {
            #expect(code { $0.lane = label } == nil)
        }
    }

    @Test(arguments: ["", "a\nb", "ä", "\u{7f}", String(repeating: "x", count: 256)])
    func `ids and keys are 1 to 255 bytes of printable ASCII`(text: String) {
        #expect(code { $0.id = text } == .invalidOption)
        #expect(code { $0.replaceKey = text } == .invalidOption)
        #expect(code { $0.dependencies = [text] } == .invalidOption)
        #expect(code { $0.idempotencyKey = .value(text) } == .invalidOption)
        let longest = String(repeating: "~", count: 255)
        #expect(
            code { ($0.id, $0.replaceKey, $0.idempotencyKey) = (longest, longest, .value(longest)) } == nil
        )
    }

    @Test func `a request may depend on at most 64 others, and not on itself`() {
        let ids = (0..<65).map { "\($0)" }
        #expect(code { $0.dependencies = ids } == .invalidOption)
        #expect(code { $0.dependencies = Array(ids.dropLast()) } == nil)
        #expect(code { $0.dependencies = ["a", "self"] } == .cyclicDependency)
    }

    @Test(arguments: ["a\"b", "a\\b"])
    func `a quoted key must not contain quotes`(value: String) {
        var key = IdempotencyKey.value(value)
        #expect(code { $0.idempotencyKey = key } == nil)
        key.isQuoted = true
        #expect(code { $0.idempotencyKey = key } == .invalidOption)
    }

    @Test(
        arguments: [
            ("", .invalidHeader), ("X Y", .invalidHeader), ("Ä", .invalidHeader),
            ("content-length", .invalidHeader),
            ("Transfer-Encoding", .invalidHeader), ("Authorization", .secretHeader), ("X-Key", nil),
        ] as [(String, QueueError.Code?)]
    )
    func `the idempotency key is sent in its own header`(name: String, expected: QueueError.Code?) {
        #expect(code { $0.idempotencyKey.headerName = name } == expected)
    }

    @Test func `a key is sent with or without quotes, under the requested header name`() throws {
        func header(_ adjust: (inout EnqueueOptions) -> Void) throws -> QueueRequest.Header? {
            try new(method: "PUT", adjust).key?.header
        }
        #expect(try header { $0.idempotencyKey = .value("k") } == .init(name: "Idempotency-Key", value: "k"))
        let quoted = try header {
            $0.idempotencyKey = .value("k")
            $0.idempotencyKey.isQuoted = true
            $0.idempotencyKey.headerName = "X-Key"
        }
        #expect(quoted == .init(name: "X-Key", value: "\"k\""))
        #expect(try header { _ in } == nil)
    }

    @Test func `an at-most-once request gets no generated key`() throws {
        #expect(try new { $0.isAtMostOnce = true }.key == nil)
        #expect(try new { $0.idempotencyKey = .none }.key == nil)
        let both = try new {
            $0.isAtMostOnce = true
            $0.idempotencyKey = .value("k")
        }
        #expect(both.key?.value == "k")
    }

    @Test(arguments: [[], [100...100], [200...600], [0...999]] as [[ClosedRange<Int>]])
    func `an expectation names statuses of 200 to 599`(statuses: [ClosedRange<Int>]) {
        #expect(code { $0.expectation.statuses = statuses } == .invalidOption)
        #expect(code { $0.expectation.contentType = "json" } == .invalidOption)
    }
}
