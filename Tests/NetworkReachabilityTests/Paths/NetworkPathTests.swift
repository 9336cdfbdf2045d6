internal import NetwatchEventLoop
internal import Testing

@testable internal import NetworkReachability

@Suite struct NetworkPathTests {
    @Test func `a local path is probed without an interface binding`() {
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
        #expect(NetworkPath.to("198.51.100.7").binding.interfaceIndex == 2)
    }
}
