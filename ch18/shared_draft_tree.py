"""The tree of drafts of a round, and what its nodes see: `rounds` is the state of shared_rounds.py."""

import torch


def seen(rounds, ancestors):
    """[slots, queries, capacity]: what the cache holds, and each node's `ancestors`, [slots, queries, nodes]."""
    behind = rounds.at - rounds.length[:, None]
    inside = ((behind >= 0) & (behind < ancestors.shape[2]))[:, None]
    index = behind.clamp(0, ancestors.shape[2] - 1)[:, None].expand(-1, ancestors.shape[1], -1)
    return (behind < 0)[:, None] | inside & ancestors.gather(2, index)


def drafted(rounds):
    """Tokens and parents [slots, nodes] of a tree, and each node's ancestors with itself, [slots, nodes, nodes]."""
    tokens, parents = [rounds.last[:, None]], [torch.zeros_like(rounds.last)[:, None]]
    own = torch.eye(rounds.nodes, dtype=torch.bool, device=rounds.last.device).expand(len(rounds.last), -1, -1)
    ancestors, scores, first = own[:, :1], torch.zeros_like(rounds.last, dtype=torch.float32)[:, None], 0
    for level in range(rounds.depth):
        if level == 0:  # the token before the newest may be a draft that its model has not read
            positions = rounds.length[:, None] + rounds.at[:2] - 1
            fed, places, visible = torch.stack((rounds.before, rounds.last), 1), positions, positions[..., None] >= rounds.at
        else:
            first = 1 + (level - 1) * rounds.width
            fed, places = tokens[-1], rounds.length[:, None] + rounds.at[first : first + rounds.width]
            positions, visible = (rounds.length + level)[:, None].expand_as(fed), seen(rounds, ancestors[:, first:])
        likely = rounds.draft.step(fed, positions, places, visible, rounds.rows).float().log_softmax(-1)
        likely = likely[:, -scores.shape[1] :] + scores[..., None]
        scores, best = likely.flatten(1).topk(rounds.width)
        parent = best // likely.shape[2] + first
        tokens.append(best % likely.shape[2])
        parents.append(parent)
        new = 1 + level * rounds.width
        ancestors = torch.cat((ancestors, ancestors[rounds.rows, parent] | own[:, new : new + rounds.width]), 1)
    return torch.cat(tokens, 1), torch.cat(parents, 1), ancestors


def agreed(rounds, tokens, parents, choices):
    """The nodes, [slots, depth + 1], from the root along the children that are the target's choice; the last one is repeated."""
    node, alive, path = torch.zeros_like(rounds.last)[:, None], True, []
    for level in range(rounds.depth):  # the child, if any, that is the target's choice behind its parent
        path.append(node)
        children = slice(1 + level * rounds.width, 1 + (level + 1) * rounds.width)
        agrees = (parents[:, children] == node) & (tokens[:, children] == choices.gather(1, node)) & alive
        alive = agrees.any(1, keepdim=True)
        node = torch.where(alive, agrees.int().argmax(1, keepdim=True) + children.start, node)
    return torch.cat((*path, node), 1)
