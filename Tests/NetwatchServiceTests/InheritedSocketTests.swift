internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import Testing

@testable internal import NetwatchService

@Suite struct InheritedSocketTests {
    private func stream(_ family: CInt) throws -> FileDescriptor {
        let type = CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
        return FileDescriptor(owning: try systemCall("socket") { socket(family, type, 0) })
    }

    @Test func `a unix socket is found by its path, if it listens`() throws {
        let directory = try ScratchDirectory()
        let path = directory.file("control.sock")
        let socket = try stream(AF_UNIX)
        let number = socket.rawValue
        let sockets = InheritedSockets(descriptors: [number])
        _ = try withUnixAddress(path) { address, length in
            try systemCall("bind") { bind(number, address, length) }
        }
        #expect(sockets.listener(at: path) == nil)
        try systemCall("listen") { Glibc.listen(number, 8) }
        #expect(sockets.listener(at: path) == number)
        #expect(sockets.listener(at: directory.file("other.sock")) == nil)
        #expect(sockets.listener(at: path + "x") == nil)
        #expect(sockets.listener(at: "") == nil)
    }

    @Test func `a TCP socket is found by its address and port`() throws {
        let socket = try stream(AF_INET)
        let number = socket.rawValue
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        try withUnsafeMutablePointer(to: &address) { pointer in
            try pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                try systemCall("bind") { bind(number, pointer, length) }
                try systemCall("getsockname") { getsockname(number, pointer, &length) }
            }
        }
        try systemCall("listen") { Glibc.listen(number, 8) }
        let port = UInt16(bigEndian: address.sin_port)
        let sockets = InheritedSockets(descriptors: [number])
        let found = ["127.0.0.1", "127.0.0.2", "[::1]"].map { host in
            WebAddress("\(host):\(port)").flatMap { sockets.listener(at: $0) }
        }
        #expect(found == [number, nil, nil])
    }

    @Test func `a socket without a use is counted`() throws {
        let socket = try stream(AF_UNIX)
        let other = try stream(AF_INET)
        let number = socket.rawValue
        let inherited = InheritedSockets(descriptors: [other.rawValue, number])
        let directory = try ScratchDirectory()
        let path = directory.file("control.sock")
        #expect(inherited.uses(control: path, web: nil).unused == 2)
        _ = try withUnixAddress(path) { address, length in
            try systemCall("bind") { bind(number, address, length) }
        }
        try systemCall("listen") { Glibc.listen(number, 8) }
        let uses = inherited.uses(control: path, web: nil)
        #expect(uses.control == number && uses.web == nil && uses.netlink == nil)
        #expect(uses.unused == 1)
    }
}
