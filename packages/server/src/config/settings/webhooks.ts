import { unset } from '../setting.ts'
import { networks } from '../values.ts'

/** Where webhooks may go. */
export const webhooks = {
  webhookAllow: unset(
    'RINGWIRE_WEBHOOK_ALLOW',
    networks(),
    [] as readonly string[],
    'unset: only public addresses',
    'Private addresses that webhooks may go to, besides all public ones. On a loopback address that is named here they need no TLS.',
  ),
}
