/// The ports and the address that identify a TCP connection among the open ones. An unknown value is 0 or `nil`.
struct ConnectionEnds: Equatable, Sendable {
    let localPort: Int
    let remotePort: Int
    let remoteAddress: String?
}
