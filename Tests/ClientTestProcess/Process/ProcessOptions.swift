/// What a process does while it sends requests: it exits, forks, runs out of descriptors, blocks threads, or has proxy
/// variables.
package struct ProcessOptions: Codable, Sendable {
    package enum Action: Codable, Sendable {
        /// Calls `exit` during TLS handshakes.
        ///
        /// - Parameter cleansUp: Whether other code initializes OpenSSL before netwatch, so that OpenSSL frees its
        ///   memory at exit. This is the positive control: the process is expected to crash.
        case exit(cleansUp: Bool)
        /// Sends its first request and starts its first path watch without a free descriptor.
        case startWithoutDescriptors
        /// Sends a request in a child of fork(2).
        case fork
        /// Sends a request.
        ///
        /// - Parameter minimumTLSVersion: The raw value of a `TLSVersion`; `nil` for the default.
        case send(minimumTLSVersion: Int? = nil)
        /// Sends a request in a second session while the program's code in the first one does not return.
        ///
        /// - Parameter until: The number of calls that block a thread when the request is sent.
        case block(Hook, until: Int)
    }

    /// The program's code that does not return.
    package enum Hook: Codable, Sendable, CaseIterable {
        case retrier
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
