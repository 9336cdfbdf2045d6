internal import ArgumentParser
internal import Foundation
internal import NetwatchService
internal import OfflineQueue
internal import Testing

@testable internal import netwatch

/// What `netwatch queue` and `netwatch send` say.
@Suite struct QueueWordsTests {
    @Test(arguments: [
        (QueueError.Code.invalidConfiguration, netwatch.ExitStatus.unusableStore),
        (.storeUnusable, .unusableStore),
        (.alreadyOwned, .unknown),
    ])
    func `a queue that no start will open ends with 78`(code: QueueError.Code, status: netwatch.ExitStatus) {
        #expect(CommandError(opening: QueueError(code, "")).status == status)
    }
}
