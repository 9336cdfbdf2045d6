internal import Glibc
internal import NetwatchTestSupport
internal import Testing

@testable internal import NetwatchNetlink

/// The kernel's descriptions of real interfaces.
@Suite(.needsNetworkNamespaces)
struct LinkTests {
    private let namespace: NetworkNamespace

    init() throws {
        namespace = try NetworkNamespace()
    }

    private func links() throws -> [String: Link] {
        let (links, malformed) = try namespace.run {
            Result { try RequestSocket().links() }.map { ($0.elements, $0.malformed) }
        }.get()
        #expect(malformed == 0)
        return Dictionary(uniqueKeysWithValues: links.map { ($0.name, $0) })
    }

    @Test func `a veth peer in another namespace is recognised`() throws {
        let other = try NetworkNamespace()
        try namespace.ip("link add here0 type veth peer name here1", "link set here0 mtu 1400")
        try namespace.ip("link add away0 type veth peer name away1 netns \(other.path)")
        let links = try links()
        #expect(links["here0"]?.kind == "veth")
        #expect(links["here0"]?.hardwareType == 1)
        #expect(links["here0"]?.lowerLink == links["here1"]?.index)
        #expect(links["here0"]?.lowerIsInOtherNamespace == false)
        #expect(links["here0"]?.mtu == 1400)
        #expect(links["away0"]?.lowerLink != nil)
        #expect(links["away0"]?.lowerIsInOtherNamespace == true)
    }

    @Test func `a bridge and its port are linked by the master index`() throws {
        try namespace.ip("link add br0 type bridge", "link add here0 type veth peer name here1")
        try namespace.ip("link set here0 master br0")
        let links = try links()
        #expect(links["br0"]?.kind == "bridge")
        #expect(links["br0"]?.master == nil)
        #expect(links["here0"]?.master == links["br0"]?.index)
    }

    @Test func `stacked interfaces have their lower link`() throws {
        try namespace.ip("link add here0 type veth peer name here1")
        try namespace.ip("link add mac0 link here0 type macvlan")
        try namespace.ip("link add vx0 type vxlan id 5 dev here0 dstport 4789")
        try namespace.ip("link add vx1 type vxlan id 6 dstport 4790")
        let links = try links()
        #expect(links["mac0"]?.kind == "macvlan")
        #expect(links["mac0"]?.lowerLink == links["here0"]?.index)
        #expect(links["vx0"]?.kind == "vxlan")
        #expect(links["vx0"]?.lowerLink == links["here0"]?.index)
        #expect(links["vx1"]?.lowerLink == nil)
    }

    @Test func `link kinds that libnl cannot parse are read`() throws {
        try namespace.ip("tuntap add tun0 mode tun", "tuntap add tap0 mode tap", "link add ifb9 type ifb")
        let links = try links()
        #expect(links["tun0"]?.kind == "tun")
        #expect(links["tun0"]?.hardwareType == 65534)
        #expect(links["tap0"]?.kind == "tun")
        #expect(links["ifb9"]?.kind == "ifb")
        #expect(links["ifb9"]?.lowerLink == nil)
    }

    @Test func `loopback has no kind`() throws {
        let loopback = try #require(try links()["lo"])
        #expect(loopback.kind == nil)
        #expect(loopback.hardwareType == 772)
    }
}
