internal import OfflineQueue

/// The routes of the service. docs/openapi.json describes all of them.
extension ServiceState {
    /// The routes of the control socket.
    ///
    /// - Parameter access: The rules for users without full access.
    func routes(access: AccessRules) -> [ControlRouter.Route] {
        QueueRoutes(queue: queue, isRunning: true, access: access).routes + readOnlyRoutes
            + ServiceRoutes(state: self).changingRoutes
    }

    /// The routes of the TCP listener.
    var readOnlyRoutes: [ControlRouter.Route] {
        ServiceRoutes(state: self).routes + HostRoutes(hosts: hosts).routes + PageRoutes(state: self).routes
    }
}
