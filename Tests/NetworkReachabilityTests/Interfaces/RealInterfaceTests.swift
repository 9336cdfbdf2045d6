internal import NetwatchNetlink
internal import NetwatchTestSupport
internal import Testing

@testable internal import NetworkReachability

/// The types and properties of interfaces that the kernel has created.
@Suite(.needsNetworkNamespaces)
struct RealInterfaceTests {
    private let namespace: NetworkNamespace

    init() throws {
        namespace = try NetworkNamespace()
    }

    /// Returns all interfaces of the namespace, classified without sysfs, which shows another namespace.
    private func interfaces() throws -> [String: NetworkInterface] {
        let links = try namespace.run { Result { try RequestSocket().links().elements } }.get()
        let table = Dictionary(uniqueKeysWithValues: links.map { ($0.index, $0) })
        var classifier = InterfaceClassifier(sysfs: .none)
        let stack = InterfaceStack(links: table, types: classifier.types(of: table))
        let all = stack.describeAll(addresses: [:]) { _ in false }
        return Dictionary(uniqueKeysWithValues: all.map { ($0.name, $0) })
    }

    @Test func `interfaces created by the kernel are classified`() throws {
        try namespace.ip("link add veth0 type veth peer name veth1", "link add br0 type bridge")
        try namespace.ip("link set veth0 master br0", "link add mac0 link veth1 type macvlan")
        try namespace.ip("tuntap add tun0 mode tun", "link add ifb9 type ifb")
        try namespace.ip("link add vx0 type vxlan id 5 dev veth1 dstport 4789")
        let interfaces = try interfaces()
        let types = interfaces.mapValues(\.type).filter { !["ifb0", "ifb1"].contains($0.key) }
        #expect(
            types == [
                "lo": .loopback, "veth0": .veth, "veth1": .veth, "br0": .bridge, "mac0": .macvlan,
                "tun0": .tunnel, "ifb9": .other, "vx0": .tunnel,
            ]
        )
        #expect(interfaces["br0"]?.medium == .veth)
        #expect(interfaces["mac0"]?.medium == .veth)
        #expect(interfaces["vx0"]?.medium == .veth)
        #expect(interfaces["tun0"]?.medium == .tunnel)
    }

    @Test func `loopback is classified correctly with the sysfs of this machine`() throws {
        let links = try RequestSocket().links().elements
        let table = Dictionary(uniqueKeysWithValues: links.map { ($0.index, $0) })
        var classifier = InterfaceClassifier(sysfs: .system)
        #expect(classifier.types(of: table)[1] == .loopback)
        let loopback = try #require(table[1])
        #expect(SysfsReader.system.properties(of: loopback) == .init())
    }
}
