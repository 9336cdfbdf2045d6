internal import NetwatchEventLoop

/// A small SVG image with a label and a value, for other pages.
struct Badge {
    let label: String
    let value: String
    let colour: String

    /// The approximate width of a character, in pixels. `textLength` stretches each text to the width that is
    /// calculated with it.
    private static let characterWidth = 7

    var svg: HTML {
        let left = Self.width(of: label), right = Self.width(of: value)
        return """
            <svg xmlns="http://www.w3.org/2000/svg" width="\(left + right)" height="20" role="img" \
            aria-label="\(label): \(value)"><title>\(label): \(value)</title>\
            <rect width="\(left)" height="20" fill="#444d56"/>\
            <rect x="\(left)" width="\(right)" height="20" fill="\(colour)"/>\
            <g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">\
            <text x="6" y="14" textLength="\(left - 12)">\(label)</text>\
            <text x="\(left + 6)" y="14" textLength="\(right - 12)">\(value)</text></g></svg>

            """
    }

    private static func width(of text: String) -> Int { text.printable.count * characterWidth + 12 }
}

extension Badge {
    private static let green = "#1a7f37"
    private static let amber = "#9a6700"
    private static let red = "#b42318"
    private static let grey = "#57606a"

    /// `name: up`
    static func status(of host: ControlMessage.Host) -> Badge {
        let colours = ["up": green, "degraded": amber, "down": red]
        return Badge(label: host.name, value: host.state, colour: colours[host.state] ?? grey)
    }

    /// `uptime 24h: 99.95 %`
    static func uptime(_ part: Double?, _ window: HistoryWindow) -> Badge {
        let colour = part.map { $0 >= 0.99 ? green : $0 >= 0.95 ? amber : red } ?? grey
        let value = part.map(TextFormat.percentage) ?? "unknown"
        return Badge(label: "uptime \(window.rawValue)", value: value, colour: colour)
    }

    /// `latency: 12.4 ms`
    static func latency(of host: ControlMessage.Host) -> Badge {
        let value = host.latencySeconds.map { TextFormat.latency($0 * 1000) } ?? "unknown"
        return Badge(label: "latency", value: value, colour: host.latencySeconds == nil ? grey : green)
    }
}
