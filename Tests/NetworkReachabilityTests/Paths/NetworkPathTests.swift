internal import NetwatchEventLoop
internal import Testing

@testable internal import NetworkReachability

@Suite struct NetworkPathTests {
    @Test func `a socket is not bound to the loopback interface, and by default to nothing`() {
        let path = NetworkPath(
            destination: IPAddress("192.0.2.1")!,
            interface: .fake(1),
            gateway: nil,
            source: IPAddress("192.0.2.1"),
            isLocal: true,
            prefixLength: 32,
            table: 255
        )
        #expect(path.binding.interfaceIndex == 0)
        let other = NetworkPath.to("198.51.100.7")
        #expect(other.binding.interfaceIndex == 2)
        #expect(other.requiredBinding == SocketBinding(interfaceIndex: 0, source: nil, family: .ipv4))
    }
}
