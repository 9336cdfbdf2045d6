internal import Glibc
internal import NetwatchTestSupport
internal import Testing

@testable internal import NetwatchEventLoop

@Suite struct ResolverConfigurationFaultTests {
    @Test func `the name servers are those that the C library queries`() {
        let text = """
            # nameserver 192.0.2.9
            search example.com
            nameserver 192.0.2.1
             nameserver 192.0.2.8
            nameserver\t2001:db8::1 # comment
            nameservers 192.0.2.7
            nameserver
            nameserver fe80::1%eth0
            nameserver 192.0.2.4
            """
        let values = NameServers.parse("nameserver x\nnameserver 192.0.2.256\n" + text)
        #expect(values.count == 6)
        #expect(NameServers.addresses(in: values) == ["192.0.2.1", "2001:db8::1", "fe80::1%eth0"])
    }

    @Test func `the failure names a file without servers or an unreadable file`() throws {
        let directory = try ScratchDirectory()
        let path = try directory.write(Array("search example.com\n".utf8), to: "resolv.conf")
        let empty = NameResolver.Failure(
            code: EAI_AGAIN,
            configurationFault: ResolverConfigurationFault(readingFrom: path)
        )
        #expect(
            empty.description == "Temporary failure in name resolution (`\(path)` contains no name server)"
        )
        try directory.write(Array("nameserver x\u{1b}[2J\nnameserver dns\n".utf8), to: "resolv.conf")
        #expect(
            ResolverConfigurationFault(readingFrom: path)?.description
                == "`\(path)` contains no name server: `x\\u{1B}[2J` is not an IPv4 or IPv6 address"
        )
        let missing = directory.file("missing")
        let unreadable = NameResolver.Failure(
            code: EAI_AGAIN,
            configurationFault: ResolverConfigurationFault(readingFrom: missing)
        )
        #expect(
            unreadable.description
                == "Temporary failure in name resolution (`\(missing)`: No such file or directory)"
        )
        try directory.write(Array("nameserver 192.0.2.1\n".utf8), to: "resolv.conf")
        #expect(ResolverConfigurationFault(readingFrom: path) == nil)
    }
}
