internal import ArgumentParser
internal import Foundation
internal import NetwatchService
internal import Synchronization
internal import Testing

@testable internal import netwatch

/// The edits of `netwatch queue` by a filter.
@Suite struct QueueEditingTests {
    @Test func `a request that arrives after nothing matched is not edited unasked`() async throws {
        // Without a terminal the arguments are valid only with `--yes`.
        var editing = try QueueEditing.parse(["--all", "--yes"])
        editing.yes = false
        let queue = FillingQueue()
        #expect(try await editing.editAll(.drop, false, ServiceClient(queue)))
        #expect(queue.isDryRun.withLock { $0 } == [true])
        editing.yes = true
        #expect(try await editing.editAll(.drop, false, ServiceClient(queue)))
        #expect(queue.isDryRun.withLock { $0 } == [true, false])
    }
}

/// A queue that is empty for the first edit only.
private final class FillingQueue: ControlTransport {
    let name = "the test"
    /// One value per edit.
    let isDryRun = Mutex<[Bool]>([])

    func answer(to exchange: ControlExchange) async throws(CommandError) -> ControlAnswer {
        let edit = try? ControlMessage.decoder.decode(ControlMessage.Edit.self, from: exchange.body ?? Data())
        let count = isDryRun.withLock { edits in
            edits.append(edit?.dryRun == true)
            return edits.count - 1
        }
        return ControlAnswer(status: 200, body: Data(#"{"v":1,"done":\#(count),"refused":0}"#.utf8))
    }
}
