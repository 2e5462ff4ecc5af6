/*
 * The common parts of the SQL adapters for kept deliveries: lists of them, and how they go with their endpoint [HOOK1].
 */

export const deliveryStatuses = ['pending', 'delivered', 'failed'] as const
export type DeliveryStatus = (typeof deliveryStatuses)[number]

/** One statement made of a part for each status: an index has the deliveries of an endpoint by status and id. */
export function ofStatuses(part: (status: DeliveryStatus) => string, status?: DeliveryStatus): string {
  return (status === undefined ? deliveryStatuses : [status]).map(part).join(' UNION ALL ')
}

/** Of the oldest deliveries, so many are looked at for what nobody attempts. Other deliveries among them go by their end. */
export const oldestLookedAt = 2_000

/** The rows of one step that removes the deliveries of an endpoint. */
export const dropSize = 500
/** The steps that the removal of an endpoint waits for. The rest goes with the old deliveries. */
export const dropSteps = 20
/** A process that has not heard of a removal may write for the endpoint meanwhile, in ms. */
export const removalKeptMs = 60_000

/** Takes steps until one of them removed less than it could; answers how many rows went. */
export async function dropInSteps(
  step: () => Promise<number>,
  most: number = Number.POSITIVE_INFINITY,
): Promise<number> {
  let count = 0
  for (let n = 0; n < most; n++) {
    const dropped = await step()
    count += dropped
    if (dropped < dropSize) break
  }
  return count
}
