/// The requests to send to a hostile server.
package struct HostileOptions: Codable, Sendable {
    package enum Kind: Codable, Sendable {
        /// The body is kept in memory.
        case data
        /// The request is a single transfer. Its body is kept in memory, up to this many bytes.
        case limited(Int)
        /// The body is written to a file.
        case download
        /// The body is passed to a slow closure, which takes 1 ms for each piece.
        case slowStream
        /// Uploads this many bytes.
        case upload(Int)
    }

    package var url: String
    /// The URL of a request that is sent first, so that one-time allocations are not measured.
    package var warmUpURL: String
    package var kind = Kind.data
    /// The number of requests, which are sent one after another. If there are several, each URL ends in the number of
    /// its request, from 0.
    package var count = 1
    /// The total timeout of each request, in milliseconds.
    package var totalTimeout = 20_000
    /// Whether the requests have credentials to answer challenges.
    package var hasCredential = false
    package var acceptedEncodings: String?
    /// Whether 127.0.0.1 is trusted with any certificate.
    package var trustsAnyCertificate = false
    /// The number of descriptors that the process may open after the warm-up request; `nil` for no limit.
    package var spareDescriptors: Int?
    /// The memory in MiB that the process wastes during the requests, to verify that the measurement detects it.
    package var wastedMemory = 0

    package init(url: String, warmUpURL: String) {
        self.url = url
        self.warmUpURL = warmUpURL
    }
}

/// The outcome of one request.
package struct HostileOutcome: Codable, Hashable, Sendable {
    /// How often each of the request's two handlers was called, and how often its wait ended.
    package var endings: [Int]
    /// The error that the handlers received, as a short text such as `URLError -1005` or `AFError …`.
    package var error: String?
    package var transferCode: Int32?
    package var phase: String?
    package var osErrno: Int32?
    package var message: String?
    package var status: Int?
    package var byteCount: Int?
}

/// The resident memory of the process, in KiB.
package struct HostileMemory: Codable, Hashable, Sendable {
    package var idle: Int
    package var peak: Int

    package init(idle: Int, peak: Int) {
        self.idle = idle
        self.peak = peak
    }
}
