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
    package static let none: TransferPause = []

    // The functions of `OptionSet` are not specialized in other modules, where they are slow.
    package var isEmpty: Bool { rawValue == 0 }

    package static func == (one: TransferPause, other: TransferPause) -> Bool {
        one.rawValue == other.rawValue
    }
}

extension TransferPause {
    /// The mask for `curl_easy_pause(3)`.
    var mask: CInt {
        (contains(.receiving) ? CURLPAUSE_RECV : 0) | (contains(.sending) ? CURLPAUSE_SEND : 0)
    }
}
