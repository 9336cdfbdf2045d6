/// What a process does while it sends requests: it exits, forks, runs out of descriptors, blocks threads, is
/// killed, or has proxy variables.
package struct ProcessOptions: Codable, Sendable {
    package enum Action: Codable, Sendable {
        /// Calls `exit` during TLS handshakes.
        ///
        /// - Parameter cleansUp: Whether other code initializes OpenSSL before netwatch, so that OpenSSL frees its
        ///   memory at exit. This is the positive control: the process is expected to crash.
        case exit(cleansUp: Bool)
        /// Calls `exit` while another thread is in libnl's parsers.
        case exitWhileParsing
        /// Sends its first request and starts its first path watch without a free descriptor.
        case startWithoutDescriptors
        /// Sends a request in a child of fork(2).
        case fork
        /// Sends a request.
        ///
        /// - Parameter minimumTLSVersion: The raw value of a `TLSVersion`; `nil` for the default.
        case send(minimumTLSVersion: Int? = nil)
        /// Downloads a response to a temporary file, and removes the file.
        case download
        /// Sends a request in a second session and one in the first session while the program's code in the first one
        /// does not return.
        ///
        /// - Parameters:
        ///   - calls: The number of calls that do not return.
        ///   - until: The number of calls that block a thread when the requests are sent. If it is lower than `calls`,
        ///     the process expects that no thread of the first session is left.
        case block(Hook, calls: Int, until: Int)
    }

    /// The program's code that does not return.
    package enum Hook: Codable, Sendable, CaseIterable {
        /// The adapter of a retry.
        case adapter
        case retrier, validator
        /// A function of an event monitor.
        case monitor
        /// A closure of the session's delegate.
        case delegate
        /// The closure that adds the parts of a form.
        case form
    }

    package var url: String
    package var action: Action
    /// Whether the session has a manager of trust policies, with which 127.0.0.1 is trusted with any certificate.
    package var hasTrustPolicies = true

    package init(url: String, action: Action) {
        self.url = url
        self.action = action
    }
}
