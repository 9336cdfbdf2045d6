internal import Foundation
internal import NetwatchService
internal import NetworkReachability

/// The output of `netwatch status`.
struct StatusReport: Encodable {
    struct Interface: Encodable {
        var name: String
        var index: UInt32
        /// `up`, `noCarrier` or `down`.
        var state: String
        /// Addresses with their prefix lengths.
        var addresses: [String]
    }

    var v = ControlMessage.version
    var type = "status"
    var time: Date
    var path: HostLine
    var interfaces: [Interface]
    var service: ServiceSummary

    init(_ snapshot: NetworkSnapshot, service: ServiceSummary, time: Date = Date()) {
        self.time = time
        self.service = service
        var path = HostLine(snapshot.general, time: time)
        path.type = "path"
        self.path = path
        interfaces = snapshot.interfaces.map { interface in
            Interface(
                name: interface.name,
                index: interface.index,
                state: LinkState(interface).rawValue,
                addresses: interface.sortedAddresses.map { "\($0.text)/\($0.prefixLength)" }
            )
        }
    }

    /// The report for people.
    var lines: [String] {
        var lines = [line("path", path.statusText)]
        for (index, interface) in interfaces.enumerated() {
            lines.append(line(index == 0 ? "interfaces" : "", summary(interface)))
        }
        if let audit = service.auditText { lines.append(line("audit", audit)) }
        lines += nameLines
        if let queue = service.queueText(now: time) { lines.append(line("queue", queue)) }
        if let store = service.storeText { lines.append(line("store", store)) }
        lines.append(line("service", service.summary))
        return lines + (service.configurationText.map { [line("config", $0)] } ?? [])
    }

    private var nameLines: [String] {
        guard let report = service.names.map(NamesReport.init) else { return [] }
        let names = report.lines.enumerated().map { line($0 == 0 ? "names" : "", $1) }
        return [line("resolver", report.resolver)] + names
    }

    /// The column in which the texts begin.
    static let indent = 12

    private func line(_ name: String, _ text: String) -> String {
        name.padded(to: Self.indent - 2) + "  " + text
    }

    private func summary(_ interface: Interface) -> String {
        let width = interfaces.map(\.name.count).max() ?? 0
        let state = LinkState(rawValue: interface.state)?.summary ?? interface.state
        let addresses = interface.addresses.joined(separator: " ")
        let text = [interface.name.padded(to: min(width, 15)), state.padded(to: 10), addresses]
        return text.joined(separator: "  ").trimmingCharacters(in: .whitespaces)
    }
}
