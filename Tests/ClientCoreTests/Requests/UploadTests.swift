internal import Foundation
internal import FoundationNetworking
internal import NetwatchTestSupport
internal import NetwatchTransport
internal import Testing

@testable internal import ClientCore

/// Uploads of forms and streams.
@Suite(.timeLimit(.minutes(5))) struct UploadTests {
    private let session: SessionManager

    init() throws {
        session = SessionManager(engine: try TransferEngine())
    }

    /// The sizes are below and above the threshold up to which a form is kept in memory.
    @Test(arguments: [0, 100, 200_000]) func `a form of any size is sent`(size: Int) async throws {
        let server = try ScriptedServer { .respond($0.values(of: "Content-Type").first ?? "") }
        let session = session
        // Uses a recorder, because the thread sanitizer recognizes its lock. The sanitizer does not recognize that a
        // continuation synchronizes threads if it is resumed before its task suspends.
        let encoded = Recorder<SessionManager.MultipartFormDataEncodingResult>()
        session.upload(
            multipartFormData: { $0.append(Data(repeating: 0x78, count: size), withName: "part") },
            usingThreshold: 1000,
            to: server.url,
            queue: .global(),
            encodingCompletion: { encoded.record($0) }
        )
        try await encoded.wait { !$0.isEmpty }
        guard case .success(let request, let isFromDisk, let file) = encoded.values[0] else {
            throw Unexpected(outcome: "\(encoded.values)")
        }
        #expect(try await request.string.hasPrefix("multipart/form-data; boundary="))
        #expect(isFromDisk == (size > 1000))
        #expect((file != nil) == isFromDisk)
        let body = try #require(server.requests.first).body
        #expect(body.count { $0 == 0x78 } >= size)
        #expect(body.suffix(4) == Array("--\r\n".utf8)[...])
    }

    @Test func `a stream is sent`() async throws {
        let server = try ScriptedServer { .respond(status: 200, body: $0.body) }
        let body = Data((0..<300_000).map { UInt8(truncatingIfNeeded: $0) })
        #expect(try await session.upload(InputStream(data: body), to: server.url).data == body)
    }
}
