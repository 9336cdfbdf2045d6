internal import NetworkReachability
internal import Testing

@testable internal import OfflineQueue

@Suite struct MeteredInterfacesTests {
    @Test(arguments: [
        ("wwan0", "wwan0", true), ("wwan0", "wwan01", false), ("wwan0", "wwan", false),
        ("wlan*", "wlan0", true), ("wlan*", "wlan", true), ("wlan*", "wl", false), ("wlan*", "xwlan0", false),
        ("*0", "eth0", true), ("*0", "eth01", false), ("e**h*", "eth0", true), ("*", "eth0", true),
        ("a*b*c", "abbc", true), ("a*b*c", "abb", false),
    ])
    func `a pattern matches the whole name, and a star any characters`(
        pattern: String,
        name: String,
        isMetered: Bool
    ) {
        let interfaces = MeteredInterfaces(patterns: ["other", pattern])
        #expect(interfaces.contains(name: name, kind: .ethernet) == isMetered)
    }

    @Test func `a mobile network is metered without a pattern`() {
        let none = MeteredInterfaces(patterns: [])
        #expect(none.contains(name: "wwan0", kind: .cellular))
        #expect(!none.contains(name: "wwan0", kind: .ethernet))
    }
}
