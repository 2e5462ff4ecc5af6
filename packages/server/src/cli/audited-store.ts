import { type Change, entryOf } from '../audit/audit.ts'
import { changedSettings, hookOf } from '../audit/changes.ts'
import type { Environment } from '../config/config.ts'
import type { AuditStore } from '../ports/audit.ts'
import type { Groups } from '../ports/groups.ts'
import type { ProductStore } from '../ports/product-store.ts'
import type { WebhookStore } from '../ports/webhooks.ts'

interface Stores {
  readonly audit: AuditStore
  readonly products: ProductStore
  readonly groups: Groups
  readonly webhooks: WebhookStore
}

type Recorded = Omit<Change, 'actor'>

/** The store of a command: what it changes is written down [ADM3]. */
export function auditedStore<S extends Stores>(store: S, surroundings: Writing): S {
  const record: Recording = (change) => recordChange(store, surroundings, change)
  return {
    ...store,
    products: auditedProducts(store.products, record),
    groups: auditedGroups(store.groups, record),
    webhooks: auditedWebhooks(store.webhooks, record),
  }
}

/** Writes down a change that the store cannot see. A change that was not written down is a warning: the change was made. */
export async function recordChange(
  { audit }: Pick<Stores, 'audit'>,
  { env, now, err }: Writing,
  change: Recorded,
): Promise<void> {
  const actor = { kind: 'cli', name: env.SUDO_USER || env.USER || env.LOGNAME || '' } as const
  try {
    await audit.add(entryOf({ actor, ...change }, now()))
  } catch (error) {
    err(`warning: the audit log could not be written: ${error instanceof Error ? error.message : String(error)}\n`)
  }
}

interface Writing {
  readonly env: Environment
  readonly now: () => number
  err(text: string): void
}
type Recording = (change: Recorded) => Promise<void>

function auditedProducts(products: ProductStore, record: Recording): ProductStore {
  return {
    ...products,
    async putKey(key, ...rest) {
      await products.putKey(key, ...rest)
      await record({ action: 'key.create', subject: key.keyId, detail: { products: key.products } })
    },
    async setDisabled(keyId, disabled, now) {
      const isThere = await products.setDisabled(keyId, disabled, now)
      if (isThere) await record({ action: disabled ? 'key.disable' : 'key.enable', subject: keyId })
      return isThere
    },
    async rotateKey(keyId, ...rest) {
      const isThere = await products.rotateKey(keyId, ...rest)
      if (isThere) await record({ action: 'key.rotate', subject: keyId })
      return isThere
    },
    async changeSettings(product, changes) {
      const settings = await products.changeSettings(product, changes)
      await record({ action: 'product.change', product, detail: changedSettings(changes) })
      return settings
    },
  }
}

function auditedGroups(groups: Groups, record: Recording): Groups {
  return {
    ...groups,
    async put(group) {
      await groups.put(group)
      const { product, role, name, members, strategy } = group
      const detail = { members: members.length, strategy }
      await record({ action: 'group.put', product, subject: `${role}/${name}`, detail })
    },
    async remove(name) {
      const isGone = await groups.remove(name)
      if (isGone) await record({ action: 'group.remove', product: name.product, subject: `${name.role}/${name.name}` })
      return isGone
    },
  }
}

function auditedWebhooks(webhooks: WebhookStore, record: Recording): WebhookStore {
  return {
    ...webhooks,
    async addEndpoint(endpoint) {
      await webhooks.addEndpoint(endpoint)
      const { product, id } = endpoint
      await record({ action: 'webhook.create', product, subject: id, detail: hookOf({ ...endpoint }) })
    },
    async changeEndpoint(product, id, changes) {
      const changed = await webhooks.changeEndpoint(product, id, changes)
      // `webhooks listen` says in it every few seconds that it goes on.
      const isSaid = Object.keys(changes).every((name) => name === 'description')
      const action = 'secret' in changes ? 'webhook.rotate' : 'webhook.change'
      if (changed !== undefined && !isSaid)
        await record({ action, product, subject: id, detail: hookOf({ ...changes }) })
      return changed
    },
    async removeEndpoint(product, id) {
      const removed = await webhooks.removeEndpoint(product, id)
      if (removed) await record({ action: 'webhook.remove', product, subject: id })
      return removed
    },
  }
}
