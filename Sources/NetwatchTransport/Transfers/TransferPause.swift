internal import CNetwatchCurl

/// The directions in which a transfer is paused.
package struct TransferPause: OptionSet, Hashable, Sendable {
    package let rawValue: Int

    package init(rawValue: Int) {
        self.rawValue = rawValue
    }

    package static let receiving = TransferPause(rawValue: 1)
    package static let sending = TransferPause(rawValue: 2)
    package static let all: TransferPause = [.receiving, .sending]
}

extension TransferPause {
    /// The mask for `curl_easy_pause(3)`.
    var mask: CInt {
        (contains(.receiving) ? CURLPAUSE_RECV : 0) | (contains(.sending) ? CURLPAUSE_SEND : 0)
    }
}
