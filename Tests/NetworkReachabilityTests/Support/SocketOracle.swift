internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTestSupport

/// Asks the kernel whether it would open a TCP connection to an address, independently of the code under test.
///
/// In repair mode (`TCP_REPAIR`), `connect(2)` on a TCP socket does everything but send. `getsockname(2)` then returns
/// the source address that the kernel chose.
struct SocketOracle {
    let namespace: NetworkNamespace
    /// The destination port. Default: 9, the discard service (RFC 863).
    var port: UInt16 = 9

    enum Answer: Equatable, Sendable {
        case sends(from: IPAddress)
        case refuses(errno: CInt)
    }

    func ask(about address: IPAddress) -> Answer {
        ask(about: [address])[0]
    }

    func ask(about addresses: [IPAddress]) -> [Answer] {
        namespace.run { addresses.map(connect) }
    }

    private func connect(to address: IPAddress) -> Answer {
        let isIPv4 = address.family == .ipv4
        let type = CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
        let descriptor = FileDescriptor(owning: socket(isIPv4 ? AF_INET : AF_INET6, type, 0))
        // Needs CAP_NET_ADMIN in the namespace, which the tests have because they created it.
        var isOn: CInt = 1
        let length = socklen_t(MemoryLayout<CInt>.size)
        precondition(setsockopt(descriptor.rawValue, CInt(IPPROTO_TCP), TCP_REPAIR, &isOn, length) == 0)
        return isIPv4
            ? Self.connect(descriptor.rawValue, ipv4(address))
            : Self.connect(descriptor.rawValue, ipv6(address))
    }

    private static func connect<Address>(_ descriptor: CInt, _ target: Address) -> Answer {
        var address = target
        var length = socklen_t(MemoryLayout<Address>.size)
        return withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                guard Glibc.connect(descriptor, pointer, length) == 0 else { return .refuses(errno: errno) }
                getsockname(descriptor, pointer, &length)
                return .sends(from: IPAddress(socketAddress: pointer)!)
            }
        }
    }

    private func ipv4(_ address: IPAddress) -> sockaddr_in {
        var result = sockaddr_in()
        result.sin_family = sa_family_t(AF_INET)
        result.sin_port = port.bigEndian
        withUnsafeMutableBytes(of: &result.sin_addr) { $0.copyBytes(from: address.bytes) }
        return result
    }

    private func ipv6(_ address: IPAddress) -> sockaddr_in6 {
        var result = sockaddr_in6()
        result.sin6_family = sa_family_t(AF_INET6)
        result.sin6_port = port.bigEndian
        result.sin6_scope_id = address.zone
        withUnsafeMutableBytes(of: &result.sin6_addr) { $0.copyBytes(from: address.bytes) }
        return result
    }
}
