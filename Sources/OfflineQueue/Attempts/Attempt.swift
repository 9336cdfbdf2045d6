package import Foundation

/// One HTTP transfer. It follows no redirects, and neither the client nor libcurl repeats it.
package struct Attempt: Sendable {
    /// The body to send.
    package enum Body: Sendable {
        case none
        case data(Data)
        /// A spooled body that was verified. It is open, so that the file cannot be replaced.
        case file(OpenedBody)
    }

    /// The request's id, for logs.
    package let id: String
    package let method: String
    package let url: String
    /// All header lines, including `Idempotency-Key`.
    package let headers: [QueueRequest.Header]
    package let body: Body
    /// Whether an unrequested resend by libcurl is harmless.
    package let mayBeSentTwice: Bool
    /// The timeouts of this attempt.
    package let timeouts: AttemptTimeouts
    /// Whether the previous attempt's connection led to the wrong server (421). This attempt then uses a new
    /// connection.
    package let isMisdirected: Bool

    package init(
        id: String,
        method: String,
        url: String,
        headers: [QueueRequest.Header],
        body: Body,
        mayBeSentTwice: Bool,
        timeouts: AttemptTimeouts = AttemptTimeouts(),
        isMisdirected: Bool = false
    ) {
        self.id = id
        self.method = method
        self.url = url
        self.headers = headers
        self.body = body
        self.mayBeSentTwice = mayBeSentTwice
        self.timeouts = timeouts
        self.isMisdirected = isMisdirected
    }

    /// The maximum duration of the whole attempt.
    package var longest: Duration {
        guard case .file(let file) = body else { return timeouts.longest(sending: 0) }
        return timeouts.longest(sending: file.body.size)
    }

    /// The maximum number of bytes of a response's body that are kept.
    package static let maximumResponseBytes = 64 * 1024

    /// The time limit for the rest of the response, once its status is known and decides the outcome. The slot is worth
    /// more than the rest of the body.
    package static let bodyTimeout: Duration = .seconds(10)
}
