internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import Testing

@testable internal import NetwatchNetlink
@testable internal import NetworkReachability

/// The types of simulated interfaces, whose sysfs entries are in a temporary directory.
@Suite struct InterfaceClassifierTests {
    private let directory: ScratchDirectory
    private var classifier: InterfaceClassifier

    init() throws {
        directory = try ScratchDirectory()
        classifier = InterfaceClassifier(sysfs: SysfsReader(root: directory.path))
    }

    private mutating func type(of link: Link) -> InterfaceType? {
        classifier.types(of: [link.index: link])[link.index]
    }

    /// Writes the sysfs entry of an interface into the temporary directory.
    private func describe(_ link: Link, deviceType: String? = nil, isWireless: Bool = false) throws {
        let directory = directory.file(link.name)
        mkdir(directory, 0o755)
        let first = deviceType.map { "DEVTYPE=\($0)\n" } ?? ""
        let uevent = "\(first)INTERFACE=\(link.name)\nIFINDEX=\(link.index)\n"
        try write(uevent, to: "\(directory)/uevent")
        if isWireless { mkdir("\(directory)/phy80211", 0o755) }
    }

    private func write(_ text: String, to path: String) throws {
        let file = FileDescriptor(
            owning: try systemCall("open") { open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o644) }
        )
        try systemCall("write") { Glibc.write(file.rawValue, text, text.utf8.count) }
    }

    @Test(arguments: [
        ("bridge", InterfaceType.bridge), ("bond", .bond), ("team", .bond), ("vlan", .vlan),
        ("macvlan", .macvlan), ("ipvlan", .macvlan), ("veth", .veth), ("wireguard", .tunnel),
        ("tun", .tunnel), ("vxlan", .tunnel), ("gretap", .tunnel), ("wwan", .cellular),
        ("rmnet", .cellular), ("dummy", .other), ("ifb", .other),
    ])
    func `the link kind takes precedence over the hardware type and sysfs`(kind: String, type: InterfaceType)
        throws
    {
        var test = self
        let link = Link.fake(kind: kind)
        if type != .other { try describe(link, deviceType: "wlan", isWireless: true) }
        #expect(test.type(of: link) == type)
    }

    @Test(
        arguments: [
            (772, InterfaceType.loopback), (32, .infiniband), (776, .tunnel), (769, .tunnel),
            (512, .pointToPoint), (804, .other), (825, .other), (65534, .other),
        ] as [(UInt16, InterfaceType)]
    )
    func `an unambiguous hardware type determines the interface type`(framing: UInt16, type: InterfaceType) {
        var test = self
        #expect(test.type(of: .fake(hardwareType: framing)) == type)
    }

    @Test(
        arguments: [
            ("wlan", 1, InterfaceType.wifi), ("wwan", 1, .cellular), ("wwan", 65534, .cellular),
            ("bluetooth", 1, .bluetooth), ("bluetooth", 65534, .other), ("gadget", 1, .ethernet),
            ("dsa", 1, .ethernet), ("hsr", 1, .other),
        ] as [(String, UInt16, InterfaceType)]
    )
    func `the device type classifies links with Ethernet framing`(
        deviceType: String,
        framing: UInt16,
        type: InterfaceType
    ) throws {
        var test = self
        let link = Link.fake(hardwareType: framing)
        try describe(link, deviceType: deviceType)
        #expect(test.type(of: link) == type)
    }

    @Test func `a radio without a device type is Wi-Fi`() throws {
        var test = self
        let link = Link.fake()
        try describe(link, isWireless: true)
        #expect(test.type(of: link) == .wifi)
    }

    @Test(
        arguments: [
            ("rmnet_data0", 519, InterfaceType.cellular), ("rev_rmnet1", 530, .cellular),
            ("ccmni2", 1, .cellular), ("rmnet0", 65534, .other), ("eth7", 519, .other),
        ] as [(String, UInt16, InterfaceType)]
    )
    func `modems of out-of-tree drivers are recognised by their names`(
        name: String,
        framing: UInt16,
        type: InterfaceType
    ) throws {
        var test = self
        let link = Link.fake(name: name, hardwareType: framing)
        try describe(link)
        #expect(test.type(of: link) == type)
    }

    @Test func `all other links with Ethernet framing are Ethernet, with and without sysfs`() throws {
        var test = self
        let link = Link.fake()
        #expect(test.type(of: link) == .ethernet)
        try describe(link)
        #expect(test.type(of: link) == .ethernet)
        var blind = InterfaceClassifier(sysfs: .none)
        #expect(blind.types(of: [link.index: link]) == [link.index: .ethernet])
    }

    // MARK: Cache

    @Test func `a type is cached until the name, the kind or the link changes`() throws {
        var test = self
        let link = Link.fake()
        try describe(link, deviceType: "wlan")
        #expect(test.type(of: link) == .wifi)
        try describe(link, deviceType: "wwan")
        #expect(test.type(of: link) == .wifi)
        let renamed = Link.fake(name: "other0")
        try describe(renamed, deviceType: "wwan")
        #expect(test.type(of: renamed) == .cellular)
        #expect(test.type(of: .fake(kind: "bridge")) == .bridge)
        #expect(test.type(of: link) == .cellular)
    }

    @Test func `a type determined without sysfs is not cached`() throws {
        var test = self
        let link = Link.fake()
        #expect(test.type(of: link) == .ethernet)
        try describe(link, deviceType: "wlan")
        #expect(test.type(of: link) == .wifi)
    }

    // MARK: Misleading sysfs entries

    @Test func `the sysfs entry of another interface with the same name is ignored`() throws {
        var test = self
        try describe(.fake(index: 8), deviceType: "wlan")
        #expect(test.type(of: .fake(index: 7)) == .ethernet)
    }

    @Test(arguments: [
        "..", ".", "", "a/b", "../here", "two words", "a\tb", "a\nb", "a:b", "sixteen-letters-",
    ])
    func `an invalid interface name is not looked up in sysfs`(name: String) throws {
        let here = directory.file("here")
        mkdir(here, 0o755)
        let uevent = "DEVTYPE=wlan\nIFINDEX=7\n"
        try write(uevent, to: "\(here)/uevent")
        try write(uevent, to: directory.file("uevent"))
        for made in ["a", "a/b", "two words", "a\tb", "a\nb", "a:b", "sixteen-letters-"] {
            mkdir(directory.file(made), 0o755)
            try write(uevent, to: "\(directory.file(made))/uevent")
        }
        #expect(SysfsReader(root: here).properties(of: .fake(name: name)) == nil)
        #expect(SysfsReader(root: directory.path).properties(of: .fake(name: name)) == nil)
    }

    @Test func `a huge file, a directory, a pipe, a symlink loop and a missing file are ignored`() throws {
        let link = Link.fake()
        let reader = SysfsReader(root: directory.path)
        let uevent = "\(directory.file(link.name))/uevent"
        try describe(link, deviceType: "wlan")
        #expect(reader.properties(of: link)?.deviceType == "wlan")
        try write("DEVTYPE=wlan\nIFINDEX=7\n" + String(repeating: "x", count: 1 << 20), to: uevent)
        #expect(reader.properties(of: link) == nil)
        for make in [{ mkdir(uevent, 0o755) }, { mkfifo(uevent, 0o644) }, { symlink(uevent, uevent) }] {
            try #require(remove(uevent) == 0)
            try #require(make() == 0)
            #expect(reader.properties(of: link) == nil)
        }
        try #require(remove(uevent) == 0)
        #expect(reader.properties(of: link) == nil)
    }

    @Test(arguments: [
        "", "IFINDEX", "IFINDEX=", "IFINDEX=07\n", "=7\n", "IFINDEX=8\nIFINDEX=7\n", "\u{0}\u{0}",
    ])
    func `a file without the link's index is ignored`(uevent: String) throws {
        let link = Link.fake()
        try describe(link)
        try write("DEVTYPE=wlan\n" + uevent, to: "\(directory.file(link.name))/uevent")
        #expect(SysfsReader(root: directory.path).properties(of: link) == nil)
    }
}

extension Link {
    /// Returns a link. Default: with carrier.
    static func fake(
        index: UInt32 = 7,
        name: String = "test0",
        kind: String? = nil,
        hardwareType: UInt16 = ethernetFraming,
        master: UInt32? = nil,
        lowerLink: UInt32? = nil,
        lowerIsInOtherNamespace: Bool = false,
        hasCarrier: Bool = true
    ) -> Link {
        Link(
            index: index,
            name: name,
            // IFF_UP, IFF_RUNNING, IFF_LOWER_UP; IF_OPER_UP or IF_OPER_DOWN
            flags: 0x1_0041,
            operationalState: hasCarrier ? 6 : 2,
            kind: kind,
            hardwareType: hardwareType,
            master: master,
            lowerLink: lowerLink,
            lowerIsInOtherNamespace: lowerIsInOtherNamespace
        )
    }
}
