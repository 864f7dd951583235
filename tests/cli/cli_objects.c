/* Makes a pool of breeze: cli_objects POOL [damage|wait|lose]. Two lists that share a node, a ring, a weak pointer. With "damage" the
 * header of the last node of an existing pool gets another byte; its offset in the image is printed. With "lose" the ring of an existing
 * pool cannot be reached any more. */

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <stillpoint/breeze.h>
#include <stillpoint/stillpoint.h>

typedef NVM_STRUCT Node
{
    NVM_PTR(struct Node) next;
    nvm_weak back;
    uint64_t number;
    char text[24];
}
Node;
typedef NVM_STRUCT Root
{
    NVM_PTR(Node) lists[2];
    NVM_PTR(Node) ring;
}
Root;
NVM_TYPE(Node, NVM_HAS_PTR(Node, next), NVM_HAS_WEAK(Node, back));
NVM_TYPE(Root, NVM_HAS_PTR(Root, lists), NVM_HAS_PTR(Root, ring));

static Node* add(NVM_POOL* pool, Node* next, uint64_t number)
{
    Node* const node = nvm_alloc(pool, NVM_TYPE_ID(Node), sizeof(Node));
    if (node != NULL) {
        node->next = next;
        node->number = number;
        strcpy(node->text, "a \"node\"");
    }
    return node;
}

static int make(const char* path)
{
    NVM_POOL* const pool = nvm_pool_create(path, 4 << 20);
    if (pool == NULL) {
        return 1;
    }
    nvm_tx_begin(pool);
    Root* const root = nvm_alloc(pool, NVM_TYPE_ID(Root), sizeof(Root));
    Node* const shared = add(pool, NULL, 1);
    root->lists[0] = add(pool, shared, 2);
    root->lists[1] = add(pool, shared, 3);
    Node* const last = add(pool, NULL, 4);
    root->ring = add(pool, add(pool, last, 5), 6);
    last->next = root->ring;
    nvm_weak_set(pool, &last->back, shared);
    nvm_pool_set_root(pool, root);
    if (nvm_tx_commit(pool) != SP_OK) {
        return 1;
    }
    return nvm_pool_close(pool) == SP_OK ? 0 : 1;
}

/* The header of an object lies in front of it; its byte 33 is one of the object's size. */
static int damage(const char* path)
{
    NVM_POOL* const pool = nvm_pool_open(path);
    if (pool == NULL) {
        return 1;
    }
    nvm_pool_facts facts;
    nvm_facts(pool, &facts);
    const Root* const root = nvm_pool_root(pool);
    unsigned char* const header = (unsigned char*)root->lists[0]->next - 48;
    const uintptr_t place = (uintptr_t)header - facts.base_address;
    header[33] ^= 1;
    printf("%lu\n", (unsigned long)place);
    return nvm_pool_close(pool) == SP_OK ? 0 : 1;
}

/* The pool stays open until standard input ends; a transaction is rolled back first. */
static int wait(const char* path)
{
    NVM_POOL* const pool = nvm_pool_open(path);
    if (pool == NULL) {
        return 1;
    }
    nvm_tx_begin(pool);
    add(pool, NULL, 7);
    nvm_tx_abort(pool);
    nvm_tx_begin(pool);
    Root* const root = nvm_pool_root(pool);
    NVM_SET(root->lists[1], add(pool, NULL, 8));
    if (nvm_tx_commit(pool) != SP_OK || nvm_drain(pool) != SP_OK) {
        return 1;
    }
    puts("open");
    fflush(stdout);
    while (getchar() != EOF) {
    }
    return nvm_pool_close(pool) == SP_OK ? 0 : 1;
}

static int lose(const char* path)
{
    NVM_POOL* const pool = nvm_pool_open(path);
    if (pool == NULL) {
        return 1;
    }
    nvm_tx_begin(pool);
    Root* const root = nvm_pool_root(pool);
    NVM_SET(root->ring, NULL);
    return nvm_tx_commit(pool) == SP_OK && nvm_pool_close(pool) == SP_OK ? 0 : 1;
}

int main(int argc, char** argv)
{
    const char* const what = argc == 3 ? argv[2] : "make";
    const int failed = strcmp(what, "make") == 0   ? make(argv[1])
                       : strcmp(what, "wait") == 0 ? wait(argv[1])
                       : strcmp(what, "lose") == 0 ? lose(argv[1])
                                                   : damage(argv[1]);
    if (failed != 0) {
        fprintf(stderr, "%s\n", sp_last_error());
    }
    return failed;
}
