internal import Foundation
internal import NetwatchNetlink
internal import NetwatchService

/// Prints notifications with the names that the interfaces had when the kernel sent them.
struct NotificationPrinter {
    let format: OutputFormat
    private let devices: Set<String>
    private var names: [UInt32: String] = [:]
    private var isEmpty = true
    private let encoder = ControlMessage.encoder

    /// - Parameter devices: The interfaces whose notifications are printed; empty for all notifications.
    init(format: OutputFormat, devices: Set<String>) {
        self.format = format
        self.devices = devices
    }

    /// Prints the notifications of a record. The initial state only provides names.
    mutating func print(_ record: NetlinkRecording.Record) {
        let time = Date(timeIntervalSince1970: Double(record.wall) / 1e9)
        switch record.content {
        case .initialState(let bytes):
            for notification in NetlinkNotification.all(in: bytes) { learn(notification) }
        case .overrun: print(.lost(time: time))
        case .datagram(let bytes):
            for notification in NetlinkNotification.all(in: bytes) {
                learn(notification)
                print(NotificationLine(notification, time: time, names: names))
            }
        }
    }

    /// Takes the first name of each interface from a record, for notifications before the one that contains the name.
    mutating func learnFirstNames(in record: NetlinkRecording.Record) {
        switch record.content {
        case .initialState(let bytes), .datagram(let bytes):
            for notification in NetlinkNotification.all(in: bytes) {
                guard let index = notification.interface, names[index] == nil else { continue }
                learn(notification)
            }
        case .overrun: break
        }
    }

    /// Prints a note on standard error if no notification was printed.
    func noteIfEmpty() {
        guard isEmpty else { return }
        Printer.note("the recording has no notifications\(devices.isEmpty ? "" : " of these interfaces")")
    }

    private mutating func learn(_ notification: NetlinkNotification) {
        guard notification.kind == .link, let index = notification.interface else { return }
        if let name = notification.interfaceName { names[index] = name }
    }

    private mutating func print(_ line: NotificationLine) {
        guard line.concerns(devices) else { return }
        isEmpty = false
        switch format {
        case .text: Printer.line(line.text)
        case .json: Printer.json(line, with: encoder)
        }
    }
}
