internal import ArgumentParser
internal import Foundation
internal import NetwatchEventLoop
internal import NetwatchService
internal import Testing

@testable internal import netwatch

/// The edits of `netwatch queue` by a filter.
@Suite struct FilterEditTests {
    @Test func `a request that arrives after an empty dry run is not edited`() async throws {
        // The arguments without `--yes` are valid only on a terminal, so the flag is removed after parsing.
        var editing = try EditOptions.parse(["--all", "--yes"])
        editing.yes = false
        let queue = FillingQueue()
        let client = ServiceClient(queue)
        #expect(try await EditRun(options: editing, action: .cancel, client: client).editAll())
        #expect(queue.isDryRun.withLock { $0 } == [true])
        editing.yes = true
        #expect(try await EditRun(options: editing, action: .cancel, client: client).editAll())
        #expect(queue.isDryRun.withLock { $0 } == [true, false])
    }

    @Test(arguments: [
        (#"{"v":1,"done":0,"refused":1}"#, "1 request matched, but retry does not apply to their state"),
        (
            #"{"v":1,"done":0,"refused":2,"code":"quota_exceeded","detail":"the user 7 has 1 requests"}"#,
            "2 requests matched, but retry does not apply to their state, or there is no room (the user 7 has 1 requests)"
        ),
    ]) func `a refusal says why there is no room for a retry`(answer: String, words: String) throws {
        let edited = try ControlMessage.decoder.decode(ControlMessage.EditedAll.self, from: Data(answer.utf8))
        #expect(EditRun.refusal(.retry, edited) == words)
    }
}

/// A queue that has no requests at the first edit, and some at later edits.
private final class FillingQueue: ServiceTransport {
    let name = "the test"
    let startHint = "the test has started it"
    /// Whether each edit was a dry run.
    let isDryRun = Lock<[Bool]>([])

    func response(to request: ServiceRequest) async throws(CommandError) -> ServiceResponse {
        let edit = try? ControlMessage.decoder.decode(ControlMessage.Edit.self, from: request.body ?? Data())
        let count = isDryRun.withLock { edits in
            edits.append(edit?.dryRun == true)
            return edits.count - 1
        }
        return ServiceResponse(status: 200, body: Data(#"{"v":1,"done":\#(count),"refused":0}"#.utf8))
    }
}
