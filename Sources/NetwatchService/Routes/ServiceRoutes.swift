internal import Foundation
internal import Glibc
internal import NIOHTTP1
internal import NetwatchEventLoop
internal import NetworkReachability
internal import OfflineQueue

/// The routes for the service as a whole.
struct ServiceRoutes: Sendable {
    let state: ServiceState

    var routes: [ControlRouter.Route] {
        [
            .init(.GET, "/healthz", access: .read, throwing: { _ in try await health() }),
            .init(.GET, "/readyz", access: .read, throwing: { _ in try await readiness() }),
            .init(
                .GET,
                "/v1/status",
                access: .read,
                throwing: { _ in
                    .json(try await state.status(), encoder: ControlMessage.encoder)
                }
            ),
            .init(.GET, "/metrics", access: .read, throwing: { _ in try await metrics() }),
        ]
    }

    /// The routes of the configuration.
    var configurationRoutes: [ControlRouter.Route] {
        [
            .init(.GET, "/v1/configuration", access: .full, throwing: { _ in await configuration() }),
            .init(.POST, "/v1/reload", access: .full, throwing: { _ in try await reload() }),
        ]
    }

    /// Responds with 200 if the store can be read; otherwise the error of the store becomes the response.
    private func health() async throws -> ControlResponse {
        _ = try await state.queue.counts
        return .text("ok\n")
    }

    /// Responds as ``health()`` does if the queue processes requests.
    private func readiness() async throws -> ControlResponse {
        try state.readiness.require()
        return try await health()
    }

    private func configuration() async -> ControlResponse {
        let inUse = state.configuration
        let review = await inUse.review()
        let message = ControlMessage.Configuration(
            path: inUse.path,
            faults: review.faults,
            reloadKeys: review.reloadKeys,
            restartKeys: review.restartKeys,
            lastGood: inUse.fallback.map { fallback in
                ControlMessage.LastGood(
                    kept: fallback.kept,
                    faults: fallback.faults,
                    ignoredKeys: fallback.ignoredKeys
                )
            },
            keepingFailure: inUse.keepingFailure
        )
        return .json(message, encoder: ControlMessage.encoder)
    }

    private func reload() async throws -> ControlResponse {
        try state.readiness.require()
        switch await state.reloads.reload() {
        case .applied(let hosts, let restartKeys, let replacedKeys):
            let message = ControlMessage.Reloaded(
                hosts: hosts,
                restartKeys: restartKeys,
                replacedKeys: replacedKeys
            )
            return .json(message, encoder: ControlMessage.encoder)
        case .refused(let faults):
            throw Problem(
                .unprocessableEntity,
                code: "configuration_refused",
                detail: faults.joined(separator: "\n")
            )
        }
    }

    private func metrics() async throws -> ControlResponse {
        let metrics = try await state.metrics()
        return .text(PrometheusText(metrics).text, type: PrometheusText.contentType)
    }
}

extension ControlResponse {
    /// Returns a response with a text.
    static func text(_ text: String, type: String = "text/plain; charset=utf-8") -> ControlResponse {
        ControlResponse(
            status: .ok,
            headers: ["content-type": type, "cache-control": "no-store"],
            body: Array(text.utf8)
        )
    }
}

/// Reads the state of the whole service for the routes.
struct ServiceState: Sendable {
    let queue: OfflineQueue
    let monitor: PathMonitor
    let hosts: HostsView
    /// The version of netwatch.
    let version: String
    let configuration: ConfigurationInUse
    let started = Date()
    let meter = QueueMeter()
    let pushes = PushMeter()
    let readiness = Readiness()
    let reloads = ConfigurationReloads()

    func status() async throws -> ControlMessage.Status {
        let statistics = try await queue.statistics()
        return ControlMessage.Status(
            version: version,
            pid: getpid(),
            started: started,
            network: await network(),
            auditCorrections: await monitor.currentStatistics().auditCorrections,
            hosts: await hostCounts(),
            queue: ControlMessage.Queue(
                counts: statistics.counts,
                requests: statistics.requests,
                bytes: statistics.bytes,
                oldest: statistics.oldest,
                paused: statistics.isPaused,
                diskFull: statistics.isDiskFull
            ),
            reload: await reloads.latest.map { (date, outcome) in
                ControlMessage.LastReload(time: date, refused: outcome.isRefused)
            },
            lastGood: configuration.fallback?.kept,
            scan: ControlMessage.Scan(queue.scan, withTexts: false),
            push: ControlMessage.Push(pushes.values, at: .now)
        )
    }

    /// Returns the metrics of this moment.
    func metrics() async throws -> [Metric] {
        ServiceMetrics(
            version: version,
            isConfigurationCurrent: await isConfigurationCurrent,
            network: await network(),
            netlink: await monitor.currentStatistics(),
            hosts: await hosts.monitor.snapshots,
            queue: try await queue.statistics(),
            scan: queue.scan,
            activity: meter.values,
            commits: queue.commitDurations,
            pushes: pushes.values,
            process: ProcessUsage(started: started)
        ).metrics
    }

    func statusLine() async -> StatusLine {
        StatusLine(
            network: await network(),
            hosts: await hostCounts(),
            queue: try? await queue.counts,
            usesLastGood: configuration.fallback != nil,
            isStoreDamaged: queue.scan.isDamaged,
            isDiskFull: await queue.isDiskFull
        )
    }

    /// Whether the last start or reload has applied the configuration files.
    var isConfigurationCurrent: Bool {
        get async {
            let isRefused = await reloads.latest?.outcome.isRefused ?? false
            return configuration.fallback == nil && !isRefused
        }
    }

    /// The number of watched hosts in each state.
    private func hostCounts() async -> [String: Int] {
        await hosts.monitor.snapshots.reduce(into: [:]) { $0[$1.stateName, default: 0] += 1 }
    }

    func network() async -> ControlMessage.Network {
        let status = await monitor.statuses(of: .general).first { _ in true }
        let path = status?.path
        let state =
            switch status?.verdict {
            case .reachable: "reachable"
            case .notReachable: "not_reachable"
            case .unknown, nil: "unknown"
            }
        return ControlMessage.Network(
            state: state,
            interface: path?.interfaceName,
            source: path?.source?.description,
            gateway: path?.gateway?.description,
            reason: status?.reason?.description
        )
    }
}

/// The routes of the service. docs/openapi.json describes all of them.
extension ServiceState {
    /// The routes of the control socket.
    ///
    /// - Parameters:
    ///   - access: The rules for users without full access.
    ///   - defaults: The options of submitted requests that do not have their own.
    func routes(access: AccessRules, defaults: RequestDefaults = RequestDefaults()) -> [ControlRouter.Route] {
        QueueRoutes(queue: queue, isRunning: true, access: access, defaults: defaults).routes + readOnlyRoutes
            + ServiceRoutes(state: self).configurationRoutes
    }

    /// The routes of the TCP listener.
    var readOnlyRoutes: [ControlRouter.Route] {
        ServiceRoutes(state: self).routes + HostRoutes(hosts: hosts).routes + PageRoutes(state: self).routes
    }
}

/// Whether the service processes requests.
final class Readiness: Sendable {
    enum Phase: String {
        /// The socket accepts connections, but the queue has not started yet.
        case starting
        case ready
        case stopping
    }

    private let state = Lock(Phase.starting)

    var phase: Phase {
        get { state.withLock { $0 } }
        set { state.withLock { $0 = newValue } }
    }

    /// Throws `not_ready` before the start and after the beginning of the stop.
    func require() throws(Problem) {
        let phase = phase
        guard phase != .ready else { return }
        throw Problem(
            .serviceUnavailable,
            code: "not_ready",
            detail: "the service is \(phase.rawValue)",
            retryAfter: 1
        )
    }
}
