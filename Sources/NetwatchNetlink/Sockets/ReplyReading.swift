internal import CNetwatchNetlink

extension RequestSocket {
    /// Parses a datagram as every possible kind of reply and as a notification, and discards the results. For
    /// fuzzing.
    package static func readReplies(in datagram: UnsafeMutableRawBufferPointer) {
        for message in NetlinkMessages(datagram) {
            _ = try? answer(message)
            _ = NetlinkNotification(message)
            switch CInt(message.type) {
            case CInt(RTM_NEWLINK), CInt(RTM_DELLINK):
                var links = Dump<Link>()
                links.add(message) { Link(netwatch_link($0)) }
            case CInt(RTM_NEWADDR), CInt(RTM_DELADDR):
                var addresses = Dump<InterfaceAddress>()
                addresses.add(message) { InterfaceAddress(netwatch_address($0)) }
            default: break
            }
        }
    }
}
