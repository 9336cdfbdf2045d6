internal import Glibc

extension NameResolver {
    /// Looks up a name with `getaddrinfo(3)`, for stream sockets of both families. Blocks until the lookup has ended.
    package static func getAddresses(of name: String) -> Outcome {
        var hints = addrinfo()
        hints.ai_family = AF_UNSPEC
        hints.ai_socktype = CInt(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        errno = 0
        let code = getaddrinfo(name, nil, &hints, &list)
        let error = errno
        defer { if let list { freeaddrinfo(list) } }
        guard code == 0 else { return .failure(failure(code, errno: error)) }
        let addresses = sequence(first: list, next: { $0?.pointee.ai_next })
            .prefix { $0 != nil }
            .compactMap { IPAddress(socketAddress: $0!.pointee.ai_addr) }
        return addresses.isEmpty ? .failure(Failure(code: EAI_NONAME)) : .success(addresses)
    }

    /// Returns the failure for an error code. Detects a shortage of descriptors: the C library then cannot open its
    /// files and sockets, and reports `EAI_AGAIN` or `EAI_NONAME`. Only `errno` shows the cause.
    private static func failure(_ code: CInt, errno: CInt) -> Failure {
        if code == EAI_SYSTEM || shortages.contains(errno) { return Failure(code: EAI_SYSTEM, errno: errno) }
        let fault = code == EAI_AGAIN ? ResolverConfigurationFault() : nil
        return Failure(code: code, configurationFault: fault)
    }

    private static let shortages: Set<CInt> = [EMFILE, ENFILE, ENOBUFS, ENOMEM]
}
