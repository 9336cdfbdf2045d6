internal import NetwatchEventLoop
internal import NetwatchNetlink

/// The state of an interface.
enum LinkState: String {
    case up, noCarrier, down

    init(_ link: Link) {
        self = link.hasCarrier ? .up : link.isUp ? .noCarrier : .down
    }

    var summary: String {
        self == .noCarrier ? "no carrier" : rawValue
    }
}

extension InterfaceAddress {
    /// The address without its zone, because the line already names the interface.
    var text: String {
        IPAddress(bytes: address.bytes)?.description ?? ""
    }
}
