import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { limitsAsShipped, Service } from '@ringwire/testkit/service'

/** The real service with the demo page. */
export class DemoService extends Service {
  constructor(settings: Record<string, string> = {}) {
    super({ ...limitsAsShipped, RINGWIRE_DEMO: '1', ...settings })
  }

  /** The demo has a key of its own, and the service only keeps its secret here for the toy backend. */
  get productSecret(): string {
    return readFileSync(join(this.dataDir, 'demo-secret'), 'utf8').trim()
  }
}
