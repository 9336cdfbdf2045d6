/// How a process disturbs itself while it sends requests.
package struct ProcessOptions: Codable, Sendable {
    package enum Action: Codable, Sendable {
        /// Calls `exit` during TLS handshakes.
        ///
        /// - Parameter cleansUp: Whether OpenSSL was initialized earlier by other code and frees everything at exit:
        ///   the positive control.
        case exit(cleansUp: Bool)
        /// Sends its first request and starts its first path watch without a free descriptor.
        case startWithoutDescriptors
        /// Sends a request in a child of fork(2).
        case fork
    }

    package var url: String
    package var action: Action

    package init(url: String, action: Action) {
        self.url = url
        self.action = action
    }
}
