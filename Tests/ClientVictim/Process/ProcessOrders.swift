/// What the process does to itself while it makes requests.
package struct ProcessOrders: Codable, Sendable {
    package enum Deed: Codable, Sendable {
        /// Calls `exit` while TLS handshakes run.
        ///
        /// - Parameter cleansUp: OpenSSL was initialized before by something else, and frees everything at exit: the
        ///   positive control.
        case exit(cleansUp: Bool)
        /// Makes its first request, and its first look at the network, without a descriptor left.
        case startWithoutDescriptors
        /// Makes a request in a child of fork(2).
        case fork
    }

    package var url: String
    package var deed: Deed

    package init(url: String, deed: Deed) {
        self.url = url
        self.deed = deed
    }
}
