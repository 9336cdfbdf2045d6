/// What a process does while it sends requests: it exits, forks, runs out of descriptors, or has proxy variables.
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
        case send
    }

    package var url: String
    package var action: Action

    package init(url: String, action: Action) {
        self.url = url
        self.action = action
    }
}
