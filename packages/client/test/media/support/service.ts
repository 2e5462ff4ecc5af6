import { limitsAsShipped, Service } from '@ringwire/testkit/service'

export interface Person {
  userId: string
  role: string
  peerRole: string
  deviceId?: string
}

/** The real service, and what an application's backend does for its user. */
export class MediaService extends Service {
  constructor(settings: Record<string, string> = {}) {
    super({ ...limitsAsShipped, ...settings })
  }

  async tokenFor({ userId, role, peerRole, deviceId }: Person): Promise<Response> {
    const device = deviceId === undefined ? {} : { device_id: deviceId }
    return Response.json(await this.issue({ user_id: userId, role, allowed_peer_role: peerRole, ...device }))
  }
}
