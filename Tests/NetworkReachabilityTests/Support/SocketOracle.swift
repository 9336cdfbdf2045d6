internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTestSupport

/// Asks the kernel whether it would send to an address, independently of the code under test.
///
/// `connect(2)` on a UDP socket looks up the route without sending. `getsockname(2)` then returns the source address
/// that the kernel chose.
struct SocketOracle {
    let namespace: NetworkNamespace

    enum Answer: Equatable, Sendable {
        case sends(from: IPAddress)
        case refuses(errno: CInt)
    }

    func ask(about address: IPAddress) -> Answer {
        ask(about: [address])[0]
    }

    func ask(about addresses: [IPAddress]) -> [Answer] {
        namespace.run { addresses.map(Self.connect) }
    }

    private static func connect(to address: IPAddress) -> Answer {
        let isIPv4 = address.family == .ipv4
        let type = CInt(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue)
        let descriptor = FileDescriptor(owning: socket(isIPv4 ? AF_INET : AF_INET6, type, 0))
        return isIPv4
            ? connect(descriptor.rawValue, ipv4(address))
            : connect(descriptor.rawValue, ipv6(address))
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

    private static func ipv4(_ address: IPAddress) -> sockaddr_in {
        var result = sockaddr_in()
        result.sin_family = sa_family_t(AF_INET)
        result.sin_port = in_port_t(9).bigEndian
        withUnsafeMutableBytes(of: &result.sin_addr) { $0.copyBytes(from: address.bytes) }
        return result
    }

    private static func ipv6(_ address: IPAddress) -> sockaddr_in6 {
        var result = sockaddr_in6()
        result.sin6_family = sa_family_t(AF_INET6)
        result.sin6_port = in_port_t(9).bigEndian
        result.sin6_scope_id = address.zone
        withUnsafeMutableBytes(of: &result.sin6_addr) { $0.copyBytes(from: address.bytes) }
        return result
    }
}
