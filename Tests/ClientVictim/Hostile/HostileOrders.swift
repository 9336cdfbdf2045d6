/// Which requests are made of a server that means harm.
package struct HostileOrders: Codable, Sendable {
    package enum Kind: Codable, Sendable {
        /// The body is kept in memory.
        case data
        /// One transfer, whose body is kept in memory up to so many bytes.
        case limited(Int)
        /// The body is written to a file.
        case download
        /// The body goes to a closure that takes a millisecond for each piece.
        case slowStream
        /// So many bytes are sent.
        case upload(Int)
    }

    package var url: String
    /// A request that is made before, so that what is made once is not counted.
    package var rehearsal: String
    package var kind = Kind.data
    /// How many requests are made, one after another. With more than one each URL ends in its number, from 0.
    package var count = 1
    /// How long a request may take. Milliseconds.
    package var totalTimeout = 20_000
    /// Answers challenges for credentials.
    package var hasCredential = false
    package var acceptedEncodings: String?
    /// Whatever certificate 127.0.0.1 shows is accepted.
    package var trustsAnybody = false
    /// Descriptors that may be opened beside those that are open before the requests; `nil` for any number.
    package var spareDescriptors: Int?
    /// What the process holds without need while it makes the requests, to show that the measurement notices. MiB.
    package var hoard = 0

    package init(url: String, rehearsal: String) {
        self.url = url
        self.rehearsal = rehearsal
    }
}

/// What came of one request.
package struct HostileOutcome: Codable, Hashable, Sendable {
    /// How often the request's two handlers and its wait ended, in this order.
    package var endings: [Int]
    /// The error as its handlers got it, in a word: `URLError -1005`, `AFError …`.
    package var error: String?
    package var transferCode: Int32?
    package var phase: String?
    package var osErrno: Int32?
    package var message: String?
    package var status: Int?
    package var byteCount: Int?
}

/// What the process needed. KiB.
package struct HostileMemory: Codable, Hashable, Sendable {
    package var idle: Int
    package var peak: Int

    package init(idle: Int, peak: Int) {
        self.idle = idle
        self.peak = peak
    }
}
