internal import Foundation
internal import FoundationNetworking
internal import NetwatchTestSupport
internal import NetwatchTransport
internal import Testing

@testable internal import ClientCore

/// The progress of requests.
@Suite(.timeLimit(.minutes(5))) struct ProgressTests {
    private let session: SessionManager

    init() throws {
        session = SessionManager(engine: try TransferEngine())
    }

    @Test func `upload progress keeps its count when a redirect drops the body`() async throws {
        let server = try ScriptedServer { request in
            guard request.method == "POST" else { return .respond("there") }
            return .respond(status: 303, headers: [.init("Location", "/there")])
        }
        let request = session.upload(Data(repeating: 1, count: 1000), to: server.url)
        #expect(try await request.string == "there")
        #expect(request.uploadProgress.completedUnitCount == 1000)
        #expect(request.uploadProgress.totalUnitCount == 1000)
    }

    /// A redirect drops the body before its first byte was sent. So the total of the upload progress becomes 0.
    @Test func `a total that returns to 0 does not trap`() {
        let report = ProgressReport()
        report.update(0, of: 100)
        report.update(0, of: 0)
        #expect(report.progress.totalUnitCount == 100)
    }

    @Test func `a progress closure set late is called with the current progress`() async throws {
        let report = ProgressReport()
        report.update(5, of: 10)
        let seen = Recorder<Int64>()
        report.setClosure(on: .global()) { seen.record($0.completedUnitCount) }
        try await seen.wait { $0 == [5] }
    }
}
