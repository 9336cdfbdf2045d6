internal import Glibc

/// Draws the history of a host as SVG.
struct HistoryGraphics {
    let timeline: HistoryTimeline

    private static let barWidth = 4
    private static let height = 24

    /// What a bar shows. The raw value is the class in the style sheet.
    private enum Kind: String, CaseIterable {
        case up
        /// Up, with a remote outage shorter than half of the known time.
        case partly
        case remote
        case local
        case unknown
    }

    /// A bar for each step.
    var bars: HTML {
        var paths: [Kind: String] = [:]
        for (index, bucket) in timeline.steps.enumerated() {
            let kind = Self.kind(of: bucket)
            // The shape differs, too, so that the kinds can be told apart without colours.
            let top = Self.top(of: kind)
            paths[kind, default: ""] += "M\(index * Self.barWidth + 2) \(top)V\(Self.height)"
        }
        let width = timeline.steps.count * Self.barWidth
        let parts = Kind.allCases.compactMap { kind in
            paths[kind].map { HTML("<path class=\"\(kind.rawValue)\" d=\"\($0)\"/>") }
        }
        return """
            <svg class="bars" role="img" aria-label="\(label)" viewBox="0 0 \(width) \(Self.height)" \
            preserveAspectRatio="none">\(parts)</svg>
            """
    }

    private static func kind(of bucket: HistoryBucket) -> Kind {
        let known = bucket.up + bucket.remote + bucket.local
        if known == 0 { return .unknown }
        if bucket.remote * 2 >= known { return .remote }
        if bucket.local * 2 >= known { return .local }
        if bucket.remote > 0 { return .partly }
        return bucket.local > 0 && bucket.up == 0 ? .local : .up
    }

    private static func top(of kind: Kind) -> Int {
        switch kind {
        case .up: 0
        case .partly: 5
        case .local: 10
        case .remote: 15
        case .unknown: 21
        }
    }

    private var label: String {
        let total = timeline.total
        let known = total.up + total.remote + total.local
        guard known > 0 else { return "last 24 hours: nothing known" }
        let remote = TextFormat.duration(milliseconds: total.remote)
        let local = TextFormat.duration(milliseconds: total.local)
        return "last 24 hours: host down \(remote), own link down \(local)"
    }

    /// The median latency of each step on a logarithmic scale. Steps without successful probes are gaps.
    var sparkline: HTML {
        let points = timeline.steps.map { $0.latencies.quantile(0.5).map { $0 / .milliseconds(1) } }
        let known = points.compactMap(\.self)
        guard let least = known.min(), let most = known.max() else { return "" }
        var path = ""
        var isDrawing = false
        for (index, point) in points.enumerated() {
            guard let point else {
                isDrawing = false
                continue
            }
            let y = Self.height - 2 - Self.level(of: point, from: least, to: most, height: Self.height - 4)
            // A point alone becomes a short line.
            path += isDrawing ? "L\(index * 2) \(y)" : "M\(index * 2) \(y)h1"
            isDrawing = true
        }
        let text = "\(TextFormat.latency(least)) to \(TextFormat.latency(most))"
        return """
            <svg class="latency" role="img" aria-label="median latency, last 24 hours: \(text)" \
            viewBox="0 0 \(points.count * 2) \(Self.height)" preserveAspectRatio="none"><path d="\(path)"/></svg>
            """
    }

    private static func level(of value: Double, from least: Double, to most: Double, height: Int) -> Int {
        guard most > least else { return height / 2 }
        return Int((log2(value / least) / log2(most / least) * Double(height)).rounded())
    }
}
