internal import Foundation

/// An HTTP/2 server over TLS that sends invalid or useless frames. It is a Python program, because Python's standard
/// library supports TLS with ALPN.
package struct HostileHTTP2Server {
    /// The certificate of all servers, and the authority that issued it and retains its files.
    ///
    /// All servers share one certificate, because an authority signs only one at a time.
    private static let issued = Result {
        let authority = try TestAuthority()
        return (authority: authority, server: try authority.server("http2", for: "IP:127.0.0.1"))
    }

    private let server: ServerProcess
    private let address: String

    /// - Parameters:
    ///   - harm: The name of an attack: a key of the dictionary in `harm` of the Python program.
    ///   - address: The address to listen on. The certificate is valid only for 127.0.0.1.
    ///   - namespace: The network namespace of the address. Default: the tests' own.
    package init(_ harm: String, address: String = "127.0.0.1", in namespace: NetworkNamespace? = nil) throws
    {
        let issued = try Self.issued.get().server
        let scratch = try ScratchDirectory()
        let program = try scratch.write(Array(Self.program.utf8), to: "server.py")
        self.address = address
        server = try ServerProcess(in: scratch, on: .address(address, in: namespace)) { _ in
            ["/usr/bin/python3", program, harm, issued.chain, issued.key]
        }
    }

    /// The path of the root certificate that clients must trust, in PEM.
    package static var root: String { get throws { try issued.get().authority.root } }

    package var url: String { "https://\(address):\(server.port)" }

    private static let program = #"""
        # An HTTP/2 server (RFC 9113) that responds to every request with the attack that the first argument names.
        import itertools, socket, ssl, sys, threading, time

        DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS = 0, 1, 2, 3, 4
        ALTSVC, UNKNOWN = 10, 200
        PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 6, 7, 8, 9
        END_STREAM, ACK, END_HEADERS, PADDED = 1, 1, 4, 8
        OK = b'\x88'  # :status 200 (RFC 7541, appendix A)
        FINE = b'HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n'
        OPEN = b'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n'
        CHALLENGE = b'HTTP/1.1 401 \r\nContent-Length: 0\r\nWWW-Authenticate: Basic realm="r"\r\n\r\n'
        LINE = b'\x00\x01x\x40' + b'y' * 64  # x: yyyy…, not indexed

        def frame(kind, flags, stream, payload=b''):
            length = len(payload).to_bytes(3, 'big')
            return length + bytes([kind, flags]) + number(stream) + payload

        def number(value): return value.to_bytes(4, 'big')

        def head(stream, flags=END_HEADERS): return frame(HEADERS, flags, stream, OK)

        def part(stream): return head(stream) + frame(DATA, 0, stream, b'part')

        def hints(stream): return frame(HEADERS, END_HEADERS, stream, b'\x08\x03103')

        def more(stream, block): return frame(CONTINUATION, 0, stream, block)

        # A complete response with a field that is not valid in HTTP/2.
        def invalid(stream, name, value):
            field = b'\x00' + bytes([len(name)]) + name + bytes([len(value)]) + value
            return [frame(HEADERS, END_HEADERS | END_STREAM, stream, OK + field), None]

        # A status without an index: name 8 of the static table.
        def status_head(stream, status, flags=0):
            return frame(HEADERS, END_HEADERS | flags, stream, b'\x08\x03' + status)

        def rst(stream, code): return frame(RST_STREAM, 0, stream, number(code))

        # Permits a million bytes, on the connection and on the stream.
        def windows(stream):
            return b''.join(frame(WINDOW_UPDATE, 0, of, number(10**6)) for of in (0, stream))

        def sized_head(stream, length, flags=0):
            # content-length: LENGTH (name 28 of the static table)
            field = b'\x0f\x0d' + bytes([len(length)]) + length
            return frame(HEADERS, END_HEADERS | flags, stream, OK + field)

        def sized(stream, length, body):
            return [sized_head(stream, length) + frame(DATA, END_STREAM, stream, body), None]

        # Longer than a frame may be (RFC 9113, section 4.2).
        def large(stream): return frame(DATA, 0, stream, bytes(16385))

        def done(stream): return frame(HEADERS, END_HEADERS | END_STREAM, stream, OK)

        def forever(data):
            # Pieces of 1 MiB, so that the client always has unread data.
            data *= (1 << 20) // len(data)
            while True: yield data

        def held(stream, data): return itertools.chain([head(stream)], forever(data))

        def harm(case, stream):
            '''Returns the pieces to send, and numbers of seconds to wait. After them the connection is closed, unless the
            last piece is None.'''
            return {
                'nothing': lambda: [None],
                'no-handshake-again': lambda: [done(stream), None],
                'half': lambda: [part(stream)],
                'goaway': lambda: [frame(GOAWAY, 0, 0, number(0) + number(2))],
                'goaway-open': lambda: [frame(GOAWAY, 0, 0, number(0) + number(0)), None],
                'goaway-mid': lambda: [part(stream) + frame(GOAWAY, 0, 0, number(stream) + number(1))],
                'reset': lambda: [frame(RST_STREAM, 0, stream, number(2)), None],
                'reset-mid': lambda: [part(stream) + frame(RST_STREAM, 0, stream, number(2)), None],
                'refused': lambda: [frame(RST_STREAM, 0, stream, number(7)), None],
                'http-1.1': lambda: [frame(RST_STREAM, 0, stream, number(13)), None],
                'http-1.1-challenge': lambda: [frame(RST_STREAM, 0, stream, number(13)), None],
                # Responses before the request's body was read. Each piece is a TLS record of its own: libcurl 7.88.1
                # drops a response if the same record contains RST_STREAM.
                'answered-204': lambda: [status_head(stream, b'204', END_STREAM), rst(stream, 0), None],
                'answered-empty': lambda:
                    [sized_head(stream, b'0', END_STREAM), rst(stream, 0), None],
                'answered-internal-error': lambda:
                    [status_head(stream, b'204', END_STREAM), rst(stream, 2), None],
                'answered-protocol-error': lambda:
                    [status_head(stream, b'204', END_STREAM), rst(stream, 1), None],
                'answered-sized': lambda: [sized_head(stream, b'4'), frame(DATA, END_STREAM, stream, b'part'),
                    rst(stream, 0), None],
                # Without a further frame, libcurl 7.88.1 does not notice that it has sent the whole body.
                'answered-early': lambda: [status_head(stream, b'204', END_STREAM), 3, windows(stream), 1,
                    frame(PING, 0, 0, bytes(8)), None],
                'answered-truncated': lambda: [sized_head(stream, b'5'), frame(DATA, 0, stream, b'part'),
                    rst(stream, 0), None],
                'answered-unsized': lambda:
                    [head(stream), frame(DATA, END_STREAM, stream, b'part'), rst(stream, 0), None],
                'continuation': lambda: itertools.chain([head(stream, 0)], forever(more(stream, LINE))),
                'empty-continuation': lambda:
                    itertools.chain([head(stream, 0)], forever(more(stream, b''))),
                'hints': lambda: forever(hints(stream)),
                'trailers': lambda:
                    itertools.chain([part(stream)], forever(frame(HEADERS, END_HEADERS, stream, LINE))),
                'settings': lambda: forever(frame(SETTINGS, 0, 0)),
                'ping': lambda: forever(frame(PING, 0, 0, bytes(8))),
                'empty-data': lambda: held(stream, frame(DATA, 0, stream)),
                'second-empty-data': lambda: [head(stream), None] if stream == 1
                    else held(stream, frame(DATA, 0, stream)),
                'padding': lambda: held(stream, frame(DATA, PADDED, stream, b'\x40' + bytes(64))),
                'priorities': lambda: held(stream, frame(PRIORITY, 0, stream, number(0) + b'\x10')),
                'windows': lambda: held(stream, frame(WINDOW_UPDATE, 0, 0, number(1))),
                'ping-acks': lambda: held(stream, frame(PING, ACK, 0, bytes(8))),
                'goaways': lambda: held(stream, frame(GOAWAY, 0, 0, number(2**31 - 1) + number(0))),
                'services': lambda: held(stream, frame(ALTSVC, 0, 0, b'\x00\x01axx')),
                'unknown': lambda: held(stream, frame(UNKNOWN, 0, stream)),
                'window-closed': lambda: [None],
                'window-overflow': lambda: [frame(WINDOW_UPDATE, 0, 0, number(2**31 - 1)) * 2, None],
                'no-status': lambda: [frame(HEADERS, END_HEADERS | END_STREAM, stream, LINE), None],
                'bad-hpack': lambda:
                    [frame(HEADERS, END_HEADERS, stream, b'\xff\xff\xff\xff\xff\xff'), None],
                'large': lambda: [part(stream) + large(stream), None],
                'sized-large': lambda:
                    [sized_head(stream, b'16389') + frame(DATA, 0, stream, b'part') + large(stream), None],
                'http-1.1-upgrade': lambda: invalid(stream, b'upgrade', b'h2,h2c'),
                'http-1.1-connection': lambda: invalid(stream, b'connection', b'close'),
                'http-1.1-keep-alive': lambda: invalid(stream, b'keep-alive', b'timeout=5'),
                'http-1.1-proxy-connection': lambda: invalid(stream, b'proxy-connection', b'close'),
                'http-1.1-pseudo-field': lambda: invalid(stream, b':unknown', b'x'),
                'http-1.1-control-character': lambda: invalid(stream, b'x', b'a\x01b'),
                'http-1.1-broken': lambda: invalid(stream, b'upgrade', b'h2,h2c'),
                'http-1.1-refused': lambda: invalid(stream, b'upgrade', b'h2,h2c'),
                'http-1.1-open': lambda: [head(stream), None],
                'http-1.1-second-upgrade': lambda: [head(stream), None] if stream == 1
                    else invalid(stream, b'upgrade', b'h2,h2c'),
                'invalid': lambda: invalid(stream, b'upgrade', b'h2,h2c'),
                'short-length': lambda: sized(stream, b'2', b'longer'),
            }[case]()

        connections, texts = itertools.count(1), itertools.count(1)

        # What the second connection gets instead of a handshake: only its end, or the alert no_application_protocol
        # (RFC 7301, section 3.2).
        SECOND = {'http-1.1-broken': b'', 'http-1.1-refused': b'\x15\x03\x03\x00\x02\x02\x78'}

        def serve(connection):
            try:
                number = next(connections)
                if sys.argv[1] == 'no-handshake-again' and number > 1:
                    while connection.recv(1 << 16): pass
                    return
                if sys.argv[1] in SECOND and number == 2:
                    connection.recv(1 << 16)  # The ClientHello. Unread data would reset the connection.
                    return connection.sendall(SECOND[sys.argv[1]])
                with context.wrap_socket(connection, server_side=True) as tls:
                    converse(tls, tls.makefile('rb'))
            except OSError: pass

        def converse_in_text(tls, stream):
            while (line := stream.readline()):
                if line != b'\r\n': continue
                if sys.argv[1] == 'http-1.1': stream.read(1)  # Unread data would reset the closed connection.
                if sys.argv[1] == 'http-1.1-open':
                    tls.sendall(OPEN)
                    return stream.read()
                if sys.argv[1] != 'http-1.1-challenge': return tls.sendall(FINE)
                # The second request gets no response.
                match next(texts):
                    case 1: tls.sendall(CHALLENGE)
                    case 2: return
                    case _: return tls.sendall(FINE)

        def converse(tls, stream):
            if tls.selected_alpn_protocol() == 'http/1.1': return converse_in_text(tls, stream)
            if len(stream.read(24)) < 24: return
            tls.sendall(frame(SETTINGS, 0, 0))
            while len(start := stream.read(9)) == 9:
                stream.read(int.from_bytes(start[:3], 'big'))
                kind, flags, number = start[3], start[4], int.from_bytes(start[5:], 'big')
                if kind == SETTINGS and not flags & ACK: tls.sendall(frame(SETTINGS, ACK, 0))
                if kind == HEADERS and not answer(tls, number): return

        def answer(tls, number):
            for piece in harm(sys.argv[1], number):
                if piece is None: return True
                time.sleep(piece) if isinstance(piece, int) else tls.sendall(piece)
            return False

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(sys.argv[2], sys.argv[3])
        context.set_alpn_protocols(['h2', 'http/1.1'] if 'http-1.1' in sys.argv[1] else ['h2'])
        listener = socket.socket(fileno=3)
        while True:
            threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
        """#
}
