/// The ends of a connection, which identify it among the open ones. A missing value is 0 or `nil`.
struct ConnectionEnds: Equatable, Sendable {
    let localPort: Int
    let remotePort: Int
    let remoteAddress: String?
}
