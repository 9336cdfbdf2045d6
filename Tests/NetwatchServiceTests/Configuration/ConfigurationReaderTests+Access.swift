internal import Foundation
internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import OfflineQueue
internal import Testing

@testable internal import NetwatchService

/// The keys of the access, and the groups that they name.
extension ConfigurationReaderTests {
    @Test func `groups of the access must exist`() {
        let reader = Self.read(
            """
            [access]
            submit-groups = ["root"]
            read-groups = ["daemon", "root"]
            [access.quota]
            requests = 5
            bytes = "1 MiB"
            staged-bytes = 100
            connections = 3
            """
        )
        #expect(reader.problems == [])
        let configuration = reader.configuration
        #expect(configuration.access.submitGroups == [SystemGroup(name: "root", id: 0)])
        #expect(configuration.access.readGroups.map(\.name) == ["daemon", "root"])
        #expect(configuration.quota.requests == 5 && configuration.quota.bytes == 1 << 20)
        #expect(configuration.quota.stagedBytes == 100 && configuration.userConnections == 3)
        #expect(
            Self.problems(
                "[access]\nread-groups = [\"root\", \"no-such-group\"]\nquota = { connections = 0 }"
            )
                == [
                    "0:2:1: `access.read-groups` is [\"root\", \"no-such-group\"]; it must be an array of names of existing "
                        + "groups; `getent group NAME` checks a name",
                    "0:3:11: `access.quota.connections` is 0; it must be an integer from 1 to 256",
                ]
        )
    }

    private static let owners: [(owner: UInt32, key: String, fault: String?)] = [
        (
            60_000, #"submit-groups = ["a", "nogroup"]"#,
            "the id 65533 of the group `nogroup` also stands for groups without an id in the user namespace of the "
                + "service; use another group"
        ),
        (
            65_534, #"submit-groups = ["a"]"#,
            "the service runs as the user 65534, whose id also stands for users without an id in its user namespace; run "
                + "it as another user"
        ),
        (60_000, #"submit-groups = ["a"]"#, nil), (65_534, "submit-groups = []", nil),
    ]

    @Test(arguments: owners)
    func `the ids of users and groups must identify them`(owner: UInt32, key: String, fault: String?) {
        var base = Self.base
        base.access = AccessPolicy(owner: owner, unmapped: UnmappedIDs(user: 65_534, group: 65_533))
        base.lookUpGroup = { (name) throws(SystemError) in
            SystemGroup(name: name, id: name == "nogroup" ? 65_533 : 60_010)
        }
        for setting in [key, key.replacing("submit", with: "read")] {
            var reader = ConfigurationReader(base)
            reader.read("0", Array("[access]\n\(setting)\n".utf8))
            reader.finish()
            let name = setting.prefix { $0 != " " }
            #expect(
                reader.problems.map(\.description) == fault.map { ["0:2:1: `access.\(name)`: \($0)"] } ?? []
            )
            #expect(reader.problems.allSatisfy { !$0.isTemporary })
        }
    }

    @Test func `a failure of the group database may be temporary, a missing group is not`() throws {
        var base = Self.base
        base.lookUpGroup = { (name) throws(SystemError) in
            if name == "failing" { throw SystemError(call: "getgrnam_r", errno: EIO) }
            return nil
        }
        let directory = try ScratchDirectory()
        func fault(_ text: String) throws -> InvalidConfiguration? {
            let file = try directory.write(Array(text.utf8), to: "a.toml")
            return #expect(throws: InvalidConfiguration.self) {
                _ = try ConfigurationFiles(path: file).read(into: base)
            }
        }
        let failing = try fault("[access]\nread-groups = [\"failing\"]\n")
        #expect(failing?.isTemporary == true)
        #expect(failing?.description.contains(":2:1: `access.read-groups` cannot be checked now: ") == true)
        #expect(try fault("[access]\nread-groups = [\"missing\", \"failing\"]\n")?.isTemporary == false)
        // A fault that a restart does not remove prevails.
        let both = try fault("[access]\nread-groups = [\"failing\"]\n[queue]\ninflight = 0\n")
        #expect(both?.isTemporary == false && both?.problems.count == 2)
    }

    @Test func `a reload applies the keys of the access`() {
        let keys = SettingTable.settings.map(\.path).filter { $0.hasPrefix("access.") }
        #expect(keys.count == 6 && Set(SettingTable.restartKeys).isDisjoint(with: keys))
    }
}
