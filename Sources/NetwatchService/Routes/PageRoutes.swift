internal import Foundation
internal import NIOHTTP1
internal import OfflineQueue

/// The routes of the status page and of the badges.
struct PageRoutes: Sendable {
    let state: ServiceState

    /// How far back the page lists outages, in seconds.
    private static let outageWindow: Int64 = 7 * 86_400
    /// The maximum number of outages that the page reads.
    private static let mostOutages = 200

    var routes: [ControlRouter.Route] {
        [
            .init(.GET, "/", access: .read, throwing: { try await page(for: $0.caller) }),
            .init(
                .GET,
                "/page.css",
                access: .read,
                throwing: { _ in .text(PageAssets.style, type: "text/css; charset=utf-8") }
            ),
            .init(
                .GET,
                "/page.js",
                access: .read,
                throwing: { _ in
                    .text(PageAssets.script, type: "text/javascript; charset=utf-8")
                }
            ),
            .init(
                .GET,
                "/badge/{name}/{kind}",
                access: .read,
                query: ["window"],
                throwing: { try await badge($0) }
            ),
        ]
    }

    private func page(for caller: Caller) async throws -> ControlResponse {
        let now = Date()
        var hosts: [(host: ControlMessage.Host, timeline: HistoryTimeline)] = []
        for host in try await state.hosts.all() {
            hosts.append((host, try await state.hosts.timeline(of: host.name, .day)))
        }
        let page = StatusPage(
            status: try await state.status(),
            hosts: hosts,
            outages: try await state.hosts.outages(
                of: nil,
                within: Self.outageWindow,
                limit: Self.mostOutages
            ),
            closedLanes: try await state.queue.statistics().closedLanes,
            namesOrigins: caller.readsLanes,
            hasHistory: state.hosts.history != nil,
            reload: await state.reloads.latest,
            now: now
        )
        var response = ControlResponse.text(page.html.text, type: "text/html; charset=utf-8")
        response.headers.add(name: "content-security-policy", value: Self.policy)
        response.headers.add(name: "x-content-type-options", value: "nosniff")
        return response
    }

    /// Permits only the page's own files.
    private static let policy =
        "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; base-uri 'none'; "
        + "form-action 'none'; frame-ancestors 'none'"

    // MARK: Badges

    private func badge(_ request: ControlRequest) async throws -> ControlResponse {
        let host = try await state.hosts.host(in: request)
        let window = try HistoryWindow(in: request)
        let badge: Badge
        switch request.parameters["kind"] ?? "" {
        case "status.svg": badge = .status(of: host)
        case "latency.svg": badge = .latency(of: host)
        case "uptime.svg":
            badge = .uptime(try await state.hosts.timeline(of: host.name, window).total.uptime, window)
        case let kind:
            throw Problem(
                .notFound,
                code: "not_found",
                detail: "there is no badge `\(kind)`; accepted: status.svg, uptime.svg, latency.svg"
            )
        }
        return .text(badge.svg.text, type: "image/svg+xml")
    }
}
