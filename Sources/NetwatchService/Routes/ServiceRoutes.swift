internal import NIOHTTP1
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
